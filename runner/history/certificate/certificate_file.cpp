// SPDX-License-Identifier: MIT
#include "history/certificate/certificate_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <system_error>

#include "history/record/record.h"
#include "support/files/folder_lock.h"
#include "support/files/write_file.h"
#include "support/text/diagnostic.h"
#include "support/toml/toml.h"

namespace stepgate {
namespace {

constexpr std::string_view restore_certificate_hint =
    "restore the file from version control, or move it away and certify anew";
constexpr double most_seconds = 1e6;
constexpr double most_certified_rounds = 1e9;
constexpr double largest_slowdown = 1e6;  // relative
constexpr double largest_log_ratio = 14;  // of that

constexpr NumberForm rate_form{.low = 0, .high = 1};
constexpr NumberForm slowdown_form{.low = -1, .high = largest_slowdown};
constexpr NumberForm log_ratio_form{.low = -largest_log_ratio, .high = largest_log_ratio};
constexpr NumberForm spread_form{.low = 0, .high = largest_log_ratio};
constexpr NumberForm seconds_form{.low = 0, .high = most_seconds};
constexpr NumberForm rounds_form{.low = 0, .high = most_certified_rounds};

constexpr auto trial_fields = [](auto& record, auto& trial) {
  record.text("name", trial.name);
  record.number("injected", slowdown_form, trial.injected);
  record.number_if_any("seen", slowdown_form, trial.seen);
  record.count("gates", trial.gates);
  record.count("refuted", trial.refuted);
  record.count("held", trial.held);
  record.number("refuted_rate_low", rate_form, trial.refuted_rate.low);
  record.number("refuted_rate_high", rate_form, trial.refuted_rate.high);
  record.number("estimate", log_ratio_form, trial.estimate);
  record.number_if_any("spread", spread_form, trial.spread);
  record.number("spread_by_rounds", spread_form, trial.spread_by_rounds);
  record.number("rounds_mean", rounds_form, trial.rounds_mean);
  record.number("gpu_seconds_mean", seconds_form, trial.gpu_seconds_mean);
  record.check(trial.refuted <= trial.gates && trial.held <= trial.gates - trial.refuted, [&] {
    return fmt::format("{} gates cannot be refuted {} times and hold {} times", trial.gates,
                       trial.refuted, trial.held);
  });
};

constexpr auto certificate_fields = [](auto& record, auto& certificate) {
  record.text("scenario", certificate.scenario);
  record.hexadecimal("scenario_fingerprint", certificate.fingerprint);
  record.text("variant", certificate.variant);
  record.texts("overrides", certificate.overrides);
  record.text("bottleneck", certificate.bottleneck);
  record.text("date", certificate.date);
  record.text("stepgate", certificate.version);
  record.hexadecimal("seed", certificate.seed);
  record.number("margin", rate_form, certificate.margin);
  record.number("alpha", rate_form, certificate.alpha);
  record.number("beta", rate_form, certificate.beta);
  record.number("round_seconds", seconds_form, certificate.round_seconds);
  record.table("environment", "an environment", certificate.environment, environment_fields);
  record.tables("trial", "a trial", certificate.trials, trial_fields);
};

bool is_of_earlier_format(const TomlTable& table) {
  const TomlEntry* format = find(table, "format");
  const auto* number =
      format == nullptr ? nullptr : std::get_if<std::int64_t>(&format->value.content);
  return number != nullptr && *number >= 1 && *number < certificate_format;
}

// Reads no more than this of an earlier format.
void read_outdated(RecordReader& record, Certificate& certificate) {
  certificate.outdated = true;
  record.text("scenario", certificate.scenario);
  record.text("variant", certificate.variant);
  record.text("date", certificate.date);
  record.text("stepgate", certificate.version);
}

void check_subject(RecordReader& record, const Certificate& certificate,
                   const std::string& scenario, const std::string& variant) {
  const auto check = [&](const char* key, const std::string& found, const std::string& wanted) {
    if (found == wanted) return;
    record.fault(key, fmt::format("the certificate of {} '{}', not of '{}'", key, found, wanted),
                 "give the file back its name, or name another with --out");
  };
  check("scenario", certificate.scenario, scenario);
  check("variant", certificate.variant, variant);
}

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
  RecordWriter record;
  record.count("format", certificate_format);
  record.digested(certificate, certificate_fields);
  return "# What the gate did when the answer was known, written by `stepgate certify`: identical "
         "variants, and variants slower or faster by what was injected; every gate in a process of "
         "its own.\n"
         "# Bounds of rates with 95 % confidence each. spread: standard deviation over the "
         "processes of log(b / a); spread_by_rounds: what the rounds of one process explain of "
         "it.\n"
         "# Measured; never changed by hand.\n" +
         record.text();
}

Certificate read_certificate(const std::filesystem::path& path, const std::string& scenario,
                             const std::string& variant) {
  Certificate certificate;
  RecordFile file(path, "a certificate", restore_certificate_hint);
  RecordReader& record = file.record();
  if (is_of_earlier_format(file.table())) {
    read_outdated(record, certificate);
  } else if (record.is_format(certificate_format, "certificate",
                              "move the file away and certify anew")) {
    record.digested(certificate, certificate_fields);
  }
  if (!file.has_faults()) check_subject(record, certificate, scenario, variant);
  file.throw_faults();
  return certificate;
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
