#pragma once
// Pieces of tensors as their compute type. Of a narrow tensor a piece is widened to memory that stays in the caches, or rounded
// from there, so that an op over rows or columns has one loop for all dtypes.
#include <array>
#include <cstddef>

#include "autograd/kernels/parallel.h"
#include "autograd/memory.h"
#include "autograd/ops/common.h"

namespace onestep::ops {

/// `rows` rows of `cols` elements of a contiguous tensor, ld apart; the first begins at element `first`.
struct Piece {
  int64_t first, rows, cols, ld;

  /// The piece as ReadPiece and WrittenPiece of that dtype have it in memory.
  Piece in_memory(DType dtype) const { return {0, rows, cols, is_narrow(dtype) ? cols : ld}; }
};

/// Elements of a narrow piece in a pass over rows: some of them fit in an L1 cache, and on a small stack.
inline constexpr int64_t kPieceSize = 1024;

/// Memory for the elements of a piece of a narrow dtype as its compute type; none where the dtype is not narrow.
class PieceMemory {
 public:
  PieceMemory(DType dtype, const Piece& piece);
  ~PieceMemory();
  PieceMemory(const PieceMemory&) = delete;
  PieceMemory& operator=(const PieceMemory&) = delete;

 protected:
  /// Writes what `from` has there to the memory, or `to` from the memory.
  void widen(const void* from);
  void round(void* to) const;

  DType dtype_;
  Piece piece_;
  uint64_t bytes_;
  alignas(64) std::array<std::byte, kPieceSize * sizeof(float)> own_;  ///< What most pieces take: threads share no lock for it.
  void* memory_;
};

/// A piece to read as T.
template <class T>
class ReadPiece : PieceMemory {
 public:
  ReadPiece(const Tensor& x, const Piece& piece) : PieceMemory(x.dtype(), piece) {
    if (memory_)
      widen(x.data_ptr());
    else
      data_ = x.data<T>() + piece.first;
  }
  const T* data() const { return memory_ ? static_cast<const T*>(memory_) : data_; }

 private:
  const T* data_ = nullptr;
};

/// A piece of y, a contiguous tensor's elements, to write as T; a narrow one is rounded where its life ends.
template <class T>
class WrittenPiece : PieceMemory {
 public:
  WrittenPiece(void* y, DType dtype, const Piece& piece) : PieceMemory(dtype, piece), y_(y) {}
  ~WrittenPiece() {
    if (memory_) round(y_);
  }
  WrittenPiece(const WrittenPiece&) = delete;
  WrittenPiece& operator=(const WrittenPiece&) = delete;
  T* data() const { return memory_ ? static_cast<T*>(memory_) : static_cast<T*>(y_) + piece_.first; }

 private:
  void* y_;
};

/// Calls f(Piece) for all of a contiguous tensor of `rows` rows of `cols` elements: by all threads for at most `at_once` rows
/// where its dtype is narrow (`cost` is that of an element), else once, as f's kernels split what is long.
template <class F>
void for_row_pieces(DType dtype, int64_t rows, int64_t cols, int64_t at_once, double cost, const F& f) {
  if (!is_narrow(dtype)) return f(Piece{0, rows, cols, cols});
  kernels::parallel_for((rows + at_once - 1) / at_once, cost * static_cast<double>(at_once * cols),
                        [&](int64_t i, int64_t end) {
                          for (; i < end; ++i) f(Piece{i * at_once * cols, std::min(at_once, rows - i * at_once), cols, cols});
                        });
}

/// The rows of a piece of kPieceSize.
inline int64_t piece_rows(int64_t cols) { return std::max<int64_t>(1, kPieceSize / std::max<int64_t>(1, cols)); }

}  // namespace onestep::ops
