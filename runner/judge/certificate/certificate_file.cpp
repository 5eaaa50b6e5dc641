// SPDX-License-Identifier: MIT
// One line a key, so that a diff shows which number changed.
#include "judge/certificate/certificate_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <system_error>

#include "judge/environment/environment_text.h"
#include "support/files/folder_lock.h"
#include "support/files/write_file.h"
#include "support/fnv1a.h"
#include "support/text/diagnostic.h"
#include "support/toml/toml.h"
#include "support/toml/toml_keys.h"
#include "support/toml/toml_text.h"

namespace stepgate {
namespace {

constexpr std::string_view restore_certificate_hint =
    "restore the file from version control, or move it away and certify anew";
constexpr double most_seconds = 1e6;
constexpr double most_certified_rounds = 1e9;
constexpr double largest_slowdown = 1e6;  // relative
constexpr double largest_log_ratio = 14;  // of that

std::string number(double value) {
  return fmt::format("{:.6g}", value);
}

void append(std::string& text, std::string_view key, std::string_view value) {
  text += fmt::format("{} = {}\n", key, value);
}

void append_trial(std::string& text, const TrialResult& trial) {
  text += "\n[[trial]]\n";
  append(text, "name", toml_string(trial.name));
  append(text, "injected", number(trial.injected));
  if (trial.seen) append(text, "seen", number(*trial.seen));
  append(text, "gates", fmt::to_string(trial.gates));
  append(text, "refuted", fmt::to_string(trial.refuted));
  append(text, "held", fmt::to_string(trial.held));
  append(text, "refuted_rate_low", number(trial.refuted_rate.low));
  append(text, "refuted_rate_high", number(trial.refuted_rate.high));
  append(text, "estimate", number(trial.estimate));
  if (trial.spread) append(text, "spread", number(*trial.spread));
  append(text, "spread_by_rounds", number(trial.spread_by_rounds));
  append(text, "rounds_mean", number(trial.rounds_mean));
  append(text, "gpu_seconds_mean", number(trial.gpu_seconds_mean));
}

// Everything but the digest.
std::string text_of(const Certificate& certificate) {
  std::vector<std::string> overrides;
  for (const std::string& one : certificate.overrides) overrides.push_back(toml_string(one));
  std::string text;
  append(text, "scenario", toml_string(certificate.scenario));
  append(text, "scenario_fingerprint", toml_string(hexadecimal(certificate.fingerprint)));
  append(text, "variant", toml_string(certificate.variant));
  append(text, "overrides", fmt::format("[{}]", fmt::join(overrides, ", ")));
  append(text, "bottleneck", toml_string(certificate.bottleneck));
  append(text, "date", toml_string(certificate.date));
  append(text, "stepgate", toml_string(certificate.version));
  append(text, "seed", toml_string(hexadecimal(certificate.seed)));
  append(text, "margin", number(certificate.margin));
  append(text, "alpha", number(certificate.alpha));
  append(text, "beta", number(certificate.beta));
  append(text, "round_seconds", number(certificate.round_seconds));
  text += "\n[environment]\n" + environment_text(certificate.environment);
  for (const TrialResult& trial : certificate.trials) append_trial(text, trial);
  return text;
}

class CertificateReader {
 public:
  explicit CertificateReader(std::string file) : file_(std::move(file)) {}

  Certificate read(const TomlTable& table, const std::string& scenario,
                   const std::string& variant) {
    Certificate certificate;
    TomlKeys keys(table, {file_, 0, 0}, "a certificate", faults_, restore_certificate_hint);
    if (is_of_earlier_format(table)) {
      certificate.outdated = true;
      read_subject(keys, certificate);
      keys.text("date", certificate.date);
      keys.text("stepgate", certificate.version);
      if (faults_.empty()) check_subject(table, certificate, scenario, variant);
    } else if (keys.is_format(certificate_format, "certificate",
                              "move the file away and certify anew")) {
      read_all(keys, certificate);
      keys.refuse_the_rest();
      // What is plainly wrong has been said; the digest is for what looks right.
      if (faults_.empty()) check_digest(table, certificate);
      if (faults_.empty()) check_subject(table, certificate, scenario, variant);
    }
    if (!faults_.empty()) throw RequestError(std::move(faults_));
    return certificate;
  }

 private:
  static bool is_of_earlier_format(const TomlTable& table) {
    const TomlEntry* format = find(table, "format");
    const auto* number =
        format == nullptr ? nullptr : std::get_if<std::int64_t>(&format->value.content);
    return number != nullptr && *number >= 1 && *number < certificate_format;
  }

  static void read_subject(TomlKeys& keys, Certificate& to) {
    keys.text("scenario", to.scenario);
    keys.text("variant", to.variant);
  }

  void read_all(TomlKeys& keys, Certificate& to) {
    keys.hexadecimal_number("digest", digest_);
    read_subject(keys, to);
    keys.hexadecimal_number("scenario_fingerprint", to.fingerprint);
    keys.texts("overrides", to.overrides);
    keys.text("bottleneck", to.bottleneck);
    keys.text("date", to.date);
    keys.text("stepgate", to.version);
    keys.hexadecimal_number("seed", to.seed);
    keys.number("margin", 0, 1, to.margin);
    keys.number("alpha", 0, 1, to.alpha);
    keys.number("beta", 0, 1, to.beta);
    keys.number("round_seconds", 0, most_seconds, to.round_seconds);
    to.environment = read_environment(keys, faults_, restore_certificate_hint);
    const TomlEntry* trials = keys.required("trial");
    if (trials == nullptr) return;
    for (const TomlKeys::Table& trial : keys.tables(*trials)) {
      to.trials.push_back(read_trial(trial));
    }
  }

  TrialResult read_trial(const TomlKeys::Table& table) {
    const std::size_t faults_before = faults_.size();
    TrialResult trial;
    TomlKeys keys(*table.content, table.place, "a trial", faults_, restore_certificate_hint);
    keys.text("name", trial.name);
    keys.number("injected", -1, largest_slowdown, trial.injected);
    keys.number_if_any("seen", -1, largest_slowdown, trial.seen);
    keys.count("gates", trial.gates);
    keys.count("refuted", trial.refuted);
    keys.count("held", trial.held);
    keys.number("refuted_rate_low", 0, 1, trial.refuted_rate.low);
    keys.number("refuted_rate_high", 0, 1, trial.refuted_rate.high);
    keys.number("estimate", -largest_log_ratio, largest_log_ratio, trial.estimate);
    keys.number_if_any("spread", 0, largest_log_ratio, trial.spread);
    keys.number("spread_by_rounds", 0, largest_log_ratio, trial.spread_by_rounds);
    keys.number("rounds_mean", 0, most_certified_rounds, trial.rounds_mean);
    keys.number("gpu_seconds_mean", 0, most_seconds, trial.gpu_seconds_mean);
    keys.refuse_the_rest();
    if (faults_.size() != faults_before) return trial;
    if (trial.refuted > trial.gates || trial.held > trial.gates - trial.refuted) {
      keys.fault(table.place, fmt::format("{} gates cannot be refuted {} times and hold {} times",
                                          trial.gates, trial.refuted, trial.held));
    }
    return trial;
  }

  void check_digest(const TomlTable& table, const Certificate& certificate) {
    if (digest_ == fnv1a(text_of(certificate))) return;
    faults_.push_back({find(table, "digest")->value.place,
                       "the certificate was changed after it was written: its digest does not fit",
                       std::string(restore_certificate_hint)});
  }

  void check_subject(const TomlTable& table, const Certificate& certificate,
                     const std::string& scenario, const std::string& variant) {
    const auto check = [&](const char* key, const char* words, const std::string& found,
                           const std::string& wanted) {
      if (found == wanted) return;
      faults_.push_back(
          {find(table, key)->value.place,
           fmt::format("the certificate of {} '{}', not of '{}'", words, found, wanted),
           "give the file back its name, or name another with --out"});
    };
    check("scenario", "scenario", certificate.scenario, scenario);
    check("variant", "variant", certificate.variant, variant);
  }

  std::string file_;
  std::uint64_t digest_ = 0;
  TomlKeys::Faults faults_;
};

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) || error;  // what cannot be looked at is not absent
}

std::optional<std::string> reason_against(const Certificate& certificate,
                                          const Environment& environment,
                                          const Scenario& scenario) {
  if (certificate.outdated) {
    return fmt::format(
        "certified on {} by stepgate {} in one process, which says nothing about another one; "
        "`stepgate certify` does it in many",
        certificate.date.substr(0, date_length), certificate.version);
  }
  if (const auto mismatch = match_environment(certificate.environment, environment)) {
    return fmt::format("certified for another {}, {}, this is {}", mismatch->key, mismatch->stored,
                       mismatch->now);
  }
  if (certificate.fingerprint == scenario.fingerprint) return std::nullopt;
  if (!certificate.overrides.empty()) {
    return fmt::format("certified with --set {}, which is another step",
                       fmt::join(certificate.overrides, " --set "));
  }
  return fmt::format("certified for the scenario as it read on {}, it has changed since",
                     certificate.date.substr(0, date_length));
}

}  // namespace

std::filesystem::path certificate_path(const std::filesystem::path& baselines,
                                       const DeviceIdentity& device, const std::string& scenario,
                                       const std::string& variant) {
  return baselines / folder_of_baselines(device) / "certificates" /
         fmt::format("{}.{}.toml", scenario, variant);
}

std::string certificate_text(const Certificate& certificate) {
  const std::string text = text_of(certificate);
  return fmt::format(
      "# What the gate did when the answer was known, written by `stepgate certify`: identical "
      "variants, and variants slower or faster by what was injected; every gate in a process of "
      "its own.\n"
      "# Bounds of rates with 95 % confidence each. spread: standard deviation over the processes "
      "of log(b / a); spread_by_rounds: what the rounds of one process explain of it.\n"
      "# Measured; never changed by hand.\nformat = {}\ndigest = {}\n{}",
      certificate_format, toml_string(hexadecimal(fnv1a(text))), text);
}

Certificate read_certificate(const std::filesystem::path& path, const std::string& scenario,
                             const std::string& variant) {
  return CertificateReader(path.generic_string())
      .read(read_toml(path, "a certificate"), scenario, variant);
}

void check_certificate_file(const std::filesystem::path& path, const std::string& scenario,
                            const std::string& variant) {
  check_writable(path);
  if (is_there(path)) (void)read_certificate(path, scenario, variant);
}

void write_certificate(const std::filesystem::path& path, const Certificate& certificate) {
  const FolderLock lock(path.has_parent_path() ? path.parent_path() : ".");
  if (is_there(path)) (void)read_certificate(path, certificate.scenario, certificate.variant);
  write_file(path, certificate_text(certificate));
}

std::vector<CitedCertificate> cited_certificates(const std::filesystem::path& baselines,
                                                 const DeviceIdentity& device,
                                                 const Scenario& scenario) {
  std::vector<CitedCertificate> cited;
  for (const Variant& variant : scenario.variants) {
    const auto path = certificate_path(baselines, device, scenario.name, variant.name);
    if (!is_there(path)) continue;
    Certificate found = read_certificate(path, scenario.name, variant.name);
    auto against = reason_against(found, environment_of(device), scenario);
    cited.push_back({path.generic_string(), std::move(found), std::move(against)});
  }
  return cited;
}

}  // namespace stepgate
