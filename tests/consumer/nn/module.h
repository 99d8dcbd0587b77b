#pragma once
// The user's own nn/module.h: the library's headers must not take it for theirs.
inline const char* own_module() { return "own module.h"; }
