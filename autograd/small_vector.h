#pragma once
// SmallVector: a vector that holds its first elements itself, as nearly all lists of the graph have one to three.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>

namespace onestep {

/// A vector of T that asks for memory only from N + 1 elements on. It grows at its end and can be moved, not copied.
template <class T, size_t N>
class SmallVector {
 public:
  SmallVector() = default;
  /// `size` default values.
  explicit SmallVector(size_t size) {
    reserve(size);
    while (size_ < size) emplace_back();
  }
  /// The given values, in this order.
  SmallVector(std::initializer_list<T> values) {
    reserve(values.size());
    for (const T& value : values) emplace_back(value);
  }
  SmallVector(SmallVector&& other) noexcept {
    if (other.data_ != other.own()) {
      data_ = std::exchange(other.data_, other.own());
      capacity_ = std::exchange(other.capacity_, N);
      size_ = std::exchange(other.size_, 0);
    } else {
      std::uninitialized_move(other.begin(), other.end(), data_);
      size_ = other.size_;
      other.clear();
    }
  }
  SmallVector& operator=(SmallVector&&) = delete;
  ~SmallVector() {
    clear();
    release();
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }

  void reserve(size_t capacity) {
    if (capacity <= capacity_) return;
    T* const larger = std::allocator<T>().allocate(capacity);
    std::uninitialized_move(begin(), end(), larger);
    std::destroy(begin(), end());
    release();
    data_ = larger;
    capacity_ = static_cast<uint32_t>(capacity);
  }
  template <class... Args>
  void emplace_back(Args&&... args) {
    if (size_ == capacity_) reserve(size_t{2} * capacity_);
    std::construct_at(data_ + size_, std::forward<Args>(args)...);
    ++size_;
  }
  void clear() {
    std::destroy(begin(), end());
    size_ = 0;
  }

 private:
  T* own() { return reinterpret_cast<T*>(memory_); }
  void release() {
    if (data_ != own()) std::allocator<T>().deallocate(data_, capacity_);
  }

  alignas(T) std::byte memory_[N * sizeof(T)];
  T* data_ = own();
  uint32_t size_ = 0, capacity_ = N;
};

}  // namespace onestep
