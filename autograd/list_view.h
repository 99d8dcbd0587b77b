#pragma once
// ListView: a list of arguments for the length of one call, without a copy.
#include <cstddef>
#include <initializer_list>
#include <vector>

namespace onestep {

/// A braced list or a vector of T, which must outlive it.
template <class T>
class ListView {
 public:
  ListView(std::initializer_list<T> list) : size_(list.size()) { begin_ = list.begin(); }
  ListView(const std::vector<T>& list) : begin_(list.data()), size_(list.size()) {}
  const T* begin() const { return begin_; }
  const T* end() const { return begin_ + size_; }
  size_t size() const { return size_; }

 private:
  const T* begin_ = nullptr;
  size_t size_ = 0;
};

}  // namespace onestep
