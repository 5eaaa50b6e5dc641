// SPDX-License-Identifier: MIT
// `stepgate describe` prints the manual page and the completions of shells, of the declarations
// that
// --help prints. The build installs what it prints.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <CLI/CLI.hpp>
#include <array>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/diagnostic.h"
#include "report/exit_code.h"
#include "verbs/command_line.h"
#include "verbs/version.h"

namespace stepgate {
namespace {

// In docs/exit_codes.md with examples.
constexpr std::array<std::pair<ExitCode, std::string_view>, 6> exit_codes{
    {{ExitCode::passes, "everything passes"},
     {ExitCode::fails, "something fails"},
     {ExitCode::wrong_request, "the request is wrong, or a run cannot be trusted"},
     {ExitCode::device_failed, "the device or a worker failed"},
     {ExitCode::not_gated, "not gated: nothing was measured that could be held against a limit"},
     {ExitCode::undecided, "undecided: more evidence would decide, or a limit must be widened"}}};

struct DescribedOption {
  std::vector<std::string> names;  // "--seed", "-v"; none of a positional argument
  std::string value;               // in words of --help; empty: a flag
  std::vector<std::string> choices;
  std::string description;
};

struct DescribedVerb {
  std::string name;
  std::string description;
  std::vector<DescribedOption> options;
  std::vector<DescribedOption> positionals;
};

// "cuda[:index]|simulated" is the choices cuda and simulated; a type of another form is none.
std::vector<std::string> choices_in(const std::string& type) {
  std::vector<std::string> choices;
  if (type.find('|') == std::string::npos) return choices;
  for (const std::string& choice : CLI::detail::split(type, '|'))
    choices.push_back(choice.substr(0, choice.find('[')));
  return choices;
}

DescribedOption described(const CLI::Option& option) {
  DescribedOption result{
      .names = {},
      .value = option.get_items_expected_max() == 0 ? "" : option.get_type_name(),
      .choices = choices_in(option.get_type_name()),
      .description = option.get_description()};
  for (const std::string& name : option.get_lnames()) result.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) result.names.push_back("-" + name);
  return result;
}

DescribedVerb described(const CLI::App& app) {
  DescribedVerb verb{app.get_name(), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    DescribedOption added = described(*option);
    if (added.names.empty()) {
      added.value = option->get_name(true);
      verb.positionals.push_back(std::move(added));
    } else {
      verb.options.push_back(std::move(added));
    }
  }
  return verb;
}

struct WholeCommandLine {
  DescribedVerb program;  // the options before a verb
  std::vector<DescribedVerb> verbs;
};

WholeCommandLine described_program() {
  CLI::App app;
  Arguments unused;
  Verb none = nullptr;
  declare_verbs(app, unused, none);
  WholeCommandLine all{described(app), {}};
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!verb->get_group().empty()) all.verbs.push_back(described(*verb));
  }
  return all;
}

std::string replaced(std::string text, std::string_view old, std::string_view now) {
  for (std::size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += now.size())
    text.replace(at, old.size(), now);
  return text;
}

std::vector<std::string> names_of(const std::vector<DescribedOption>& options) {
  std::vector<std::string> names;
  for (const DescribedOption& option : options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

// Text of a manual page: a hyphen stays one, and no line is a request.
std::string roff(const std::string& text) {
  const std::string escaped = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  return escaped.starts_with('.') || escaped.starts_with('\'') ? "\\&" + escaped : escaped;
}

void print_options_as_roff(std::ostream& out, const std::vector<DescribedOption>& options) {
  for (const DescribedOption& option : options) {
    const std::string value = option.value.empty() ? "" : " " + option.value;
    const std::string names = option.names.empty()
                                  ? option.value
                                  : fmt::format("{}{}", fmt::join(option.names, ", "), value);
    fmt::print(out, ".TP\n\\fB{}\\fR\n{}\n", roff(names), roff(option.description));
  }
}

void print_manual(std::ostream& out, const WholeCommandLine& all) {
  fmt::print(out,
             ".TH STEPGATE 1 \"\" \"stepgate {}\" \"User Commands\"\n"
             ".SH NAME\nstepgate \\- {}\n"
             ".SH SYNOPSIS\n\\fBstepgate\\fR [\\fIOPTIONS\\fR] \\fIVERB\\fR [\\fIARGUMENTS\\fR]\n"
             ".SH OPTIONS\n",
             STEPGATE_VERSION,
             roff(all.program.description.substr(all.program.description.find(": ") + 2)));
  print_options_as_roff(out, all.program.options);
  fmt::print(out, ".SH VERBS\n");
  for (const DescribedVerb& verb : all.verbs) {
    fmt::print(out, ".SS {}\n{}\n", roff(verb.name), roff(verb.description));
    print_options_as_roff(out, verb.positionals);
    print_options_as_roff(out, verb.options);
  }
  fmt::print(out, ".SH \"EXIT STATUS\"\n");
  for (const auto& [code, words] : exit_codes)
    fmt::print(out, ".TP\n\\fB{}\\fR\n{}\n", status_of(code), roff(std::string(words)));
  fmt::print(out,
             ".SH FILES\n.TP\n\\fBscenarios/\\fR\nscenarios, where none are named\n"
             ".TP\n\\fBbaselines/\\fR\nstored runs and device profiles of your own\n"
             ".TP\n\\fBshare/stepgate/\\fR beside the program's folder\nprofiles, examples, docs, "
             "files for CI systems\n");
}

void print_bash(std::ostream& out, const WholeCommandLine& all) {
  fmt::print(out, R"(# Completion of stepgate for bash, written by `stepgate describe bash`.
_stepgate() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} verb='' words='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${{COMP_WORDS[i]}} in
      --baselines) ((i++)) ;;
      -*) ;;
      *) verb=${{COMP_WORDS[i]}}; break ;;
    esac
  done
  case $verb:$before in
)");
  std::vector<std::string> with_files{"*:--baselines"};
  for (const DescribedVerb& verb : all.verbs) {
    for (const DescribedOption& option : verb.options) {
      if (option.value.empty()) continue;
      for (const std::string& name : option.names) {
        const std::string typed = verb.name + ":" + name;
        if (option.choices.empty())
          with_files.push_back(typed);
        else
          fmt::print(out, "    {}) words='{}' ;;\n", typed, fmt::join(option.choices, " "));
      }
    }
  }
  std::vector<std::string> verbs;
  for (const DescribedVerb& verb : all.verbs) verbs.push_back(verb.name);
  const std::string shared = fmt::format("{}", fmt::join(names_of(all.program.options), " "));
  fmt::print(out,
             "    {}) return ;;  # the default: files\n    :*) words='{} {}' ;;\n    *:*)\n      "
             "[[ $word == -* ]] || return\n      case $verb in\n",
             fmt::join(with_files, " | "), fmt::join(verbs, " "), shared);
  for (const DescribedVerb& verb : all.verbs) {
    fmt::print(out, "        {}) words='{} --baselines' ;;\n", verb.name,
               fmt::join(names_of(verb.options), " "));
  }
  fmt::print(out, R"(      esac
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}}
complete -o default -o bashdefault -F _stepgate stepgate
)");
}

// Text between single quotes, in a specification of zsh's _arguments or _describe.
std::string zsh_text(std::string text) {
  for (const char* special : {"\\", "[", "]", ":"})
    text = replaced(text, special, "\\" + std::string(special));
  return replaced(text, "'", "'\\''");
}

void print_options_for_zsh(std::ostream& out, const std::vector<DescribedOption>& options) {
  for (const DescribedOption& option : options) {
    for (const std::string& name : option.names) {
      std::string action;
      if (!option.choices.empty())
        action = fmt::format(":value:({})", fmt::join(option.choices, " "));
      else if (!option.value.empty())
        action = ":value:_files";
      fmt::print(out, " \\\n        '*{}[{}]{}'", name, zsh_text(option.description), action);
    }
  }
}

void print_zsh(std::ostream& out, const WholeCommandLine& all) {
  fmt::print(
      out,
      "#compdef stepgate\n# Completion of stepgate for zsh, written by `stepgate describe "
      "zsh`.\n_stepgate() {{\n  local curcontext=$curcontext state line\n  local -a verbs=(");
  for (const DescribedVerb& verb : all.verbs)
    fmt::print(out, "\n    '{}:{}'", verb.name, zsh_text(verb.description));
  fmt::print(out, "\n  )\n  _arguments -C");
  print_options_for_zsh(out, all.program.options);
  fmt::print(
      out,
      " \\\n    '1: :->verb' '*:: :->rest'\n  case $state in\n    verb) _describe verb verbs "
      ";;\n    rest)\n      case $words[1] in\n");
  for (const DescribedVerb& verb : all.verbs) {
    fmt::print(out, "      {}) _arguments", verb.name);
    print_options_for_zsh(out, verb.options);
    fmt::print(out, " \\\n        '*:file:_files' ;;\n");
  }
  fmt::print(out, "      esac ;;\n  esac\n}}\n_stepgate \"$@\"\n");
}

void print_options_for_fish(std::ostream& out, const std::vector<DescribedOption>& options,
                            const std::string& condition) {
  for (const DescribedOption& option : options) {
    std::string line = "complete -c stepgate" + condition;
    for (const std::string& name : option.names)
      line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (!option.choices.empty())
      line += fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
    else if (!option.value.empty())
      line += " -r";
    const std::string words = replaced(replaced(option.description, "\\", "\\\\"), "'", "\\'");
    fmt::print(out, "{} -d '{}'\n", line, words);
  }
}

void print_fish(std::ostream& out, const WholeCommandLine& all) {
  fmt::print(out, "# Completion of stepgate for fish, written by `stepgate describe fish`.\n");
  print_options_for_fish(out, all.program.options, "");
  for (const DescribedVerb& verb : all.verbs) {
    const std::string words = replaced(verb.description, "'", "\\'");
    fmt::print(out, "complete -c stepgate -n __fish_use_subcommand -f -a {} -d '{}'\n", verb.name,
               words);
    print_options_for_fish(out, verb.options,
                           fmt::format(" -n '__fish_seen_subcommand_from {}'", verb.name));
  }
}

}  // namespace

int describe_itself(const Arguments& arguments) {
  using Printer = void (*)(std::ostream&, const WholeCommandLine&);
  for (const auto& [form, print] : {std::pair<std::string_view, Printer>{"man", print_manual},
                                    {"bash", print_bash},
                                    {"zsh", print_zsh},
                                    {"fish", print_fish}}) {
    if (arguments.filter != form) continue;
    print(std::cout, described_program());
    return status_of(ExitCode::passes);
  }
  throw RequestError("nothing describes stepgate for '" + arguments.filter + "'",
                     "say man, bash, zsh or fish");
}

}  // namespace stepgate
