#pragma once
// doctest takes it that WASI has no exceptions: it is included as if for another system, after the headers that it includes.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <ctime>
#include <exception>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <unordered_set>
#include <vector>

#define DOCTEST_CONFIG_NO_MULTITHREADING
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS
#pragma push_macro("__wasi__")
#undef __wasi__
#include_next <doctest/doctest.h>
#pragma pop_macro("__wasi__")
