// SPDX-License-Identifier: MIT
// Certificates on disk: where they lie, their text, and every fault of a damaged one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "judge/environment/certificate.h"
#include "scenario/scenario.h"

namespace stepgate {

constexpr std::int64_t certificate_format = 2;  // 1 had all gates in one process

// <baselines>/<folder_of_baselines>/certificates/<scenario>.<variant>.toml
std::filesystem::path certificate_path(const std::filesystem::path& baselines,
                                       const DeviceIdentity&, const std::string& scenario,
                                       const std::string& variant);

// The same values give the same text; read_certificate gives them back to six digits.
std::string certificate_text(const Certificate&);

// The certificate of that scenario and variant; of an earlier format whose it is, and that it is
// outdated. Throws RequestError with everything that is wrong: no TOML, an unknown or missing key,
// a value of another type, more gates decided than run, a digest that does not fit, a later format,
// another scenario or variant.
Certificate read_certificate(const std::filesystem::path&, const std::string& scenario,
                             const std::string& variant);

// Throws RequestError when write_certificate would refuse, as far as that can be known before there
// is a certificate: for a long measurement, which should not end with nowhere to put its result.
void check_certificate_file(const std::filesystem::path&, const std::string& scenario,
                            const std::string& variant);

// A later certificate takes the place of an earlier one. Throws RequestError, and leaves the file
// as it is, when what lies there is no certificate of this scenario and variant.
void write_certificate(const std::filesystem::path&, const Certificate&);

// The certificates of any of the scenario's variants on this device. Throws RequestError for
// damaged ones.
std::vector<CitedCertificate> cited_certificates(const std::filesystem::path& baselines,
                                                 const DeviceIdentity&, const Scenario&);

}  // namespace stepgate
