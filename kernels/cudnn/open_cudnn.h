// SPDX-License-Identifier: MIT
// Opens cuDNN 9 at run time. Knows no cuDNN types, so that builds without its headers include it.
#pragma once

#include <memory>
#include <string>

namespace stepgate {

class Cudnn;  // the library and a handle of the current device

// Loads libcudnn.so.9, or what the environment variable STEPGATE_CUDNN names. Returns nullptr where
// that fails; *reason then says why, with the name that was tried and the variable. The same device
// must be current wherever the library is used.
std::shared_ptr<Cudnn> open_cudnn(std::string* reason);

// The version as text: "9.14.0".
std::string version_of(const Cudnn&);

}  // namespace stepgate
