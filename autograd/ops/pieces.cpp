#include "autograd/ops/pieces.h"

namespace onestep::ops {

PieceMemory::PieceMemory(DType dtype, const Piece& piece)
    : dtype_(dtype),
      piece_(piece),
      bytes_(is_narrow(dtype) ? static_cast<uint64_t>(piece.rows * piece.cols * size_of(compute_type(dtype))) : 0),
      memory_(bytes_ > sizeof own_ ? memory::allocate(bytes_)
              : is_narrow(dtype)   ? own_.data()
                                   : nullptr) {}

PieceMemory::~PieceMemory() {
  if (bytes_ > sizeof own_) memory::deallocate(memory_, bytes_);
}

namespace {

/// The elements of a piece's rows that lie side by side, so that few calls convert them.
Piece joined(const Piece& p) { return p.ld == p.cols ? Piece{p.first, 1, p.rows * p.cols, p.rows * p.cols} : p; }

}  // namespace

void PieceMemory::widen(const void* from) {
  const Piece p = joined(piece_);
  const DType wide = compute_type(dtype_);
  const int64_t size = size_of(dtype_), wide_size = size_of(wide);
  for (int64_t r = 0; r < p.rows; ++r)
    convert_elements(dtype_, static_cast<const std::byte*>(from) + (p.first + r * p.ld) * size, wide,
                     static_cast<std::byte*>(memory_) + r * p.cols * wide_size, p.cols);
}

void PieceMemory::round(void* to) const {
  const Piece p = joined(piece_);
  const DType wide = compute_type(dtype_);
  const int64_t size = size_of(dtype_), wide_size = size_of(wide);
  for (int64_t r = 0; r < p.rows; ++r)
    convert_elements(wide, static_cast<const std::byte*>(memory_) + r * p.cols * wide_size, dtype_,
                     static_cast<std::byte*>(to) + (p.first + r * p.ld) * size, p.cols);
}

}  // namespace onestep::ops
