// SPDX-License-Identifier: Apache-2.0
#include "ground/pages/pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firebreak::pages {
namespace {

using testing::HasSubstr;
using testing::Not;

class Pages : public testing::Test {
 protected:
  std::string strays = "end", name;
  int percent = 0;
  bool all = false;
  CLI::App app{"Does things."};
  const Subject subject{"fire-thing",
                        8,
                        "1.2",
                        {{"Starts a-b", "fire-thing run --all a-b"}},
                        {"THING", "list --short", "--strays"}};

  Pages() {
    app.add_option("--strays", strays, "What becomes of them")
        ->check(CLI::IsMember({"end", "report"}))
        ->capture_default_str();
    app.add_flag("--shelf")->group("");
    CLI::App* run = app.add_subcommand("run", "Starts one\n.or more");
    run->add_option("-p,--percent", percent, "A share, as in C:\\x")
        ->check(CLI::Range(1, 100))
        ->envname("SHARE");
    run->add_flag("--all", all, "All of them");
    run->add_option("NAME", name, "Whom")->required();
  }
};

TEST_F(Pages, TheManualHasEachOptionWithWhatItTakes) {
  const std::string page = manual_page(app, subject);
  EXPECT_THAT(page,
              HasSubstr(".TH FIRE-THING 8 \"\" \"Firebreak 1.2\"\n.SH NAME\nfire\\-thing \\- Does things\n"));
  EXPECT_THAT(page,
              HasSubstr("\\fB\\-\\-strays\\fR \\fIend|report\\fR\nWhat becomes of them. Default: end.\n"));
  EXPECT_THAT(page, HasSubstr(".SS \"fire-thing run [\\fIOPTIONS\\fR] \\fINAME\\fR\""));
  EXPECT_THAT(page, HasSubstr("\\fB\\-p\\fR, \\fB\\-\\-percent\\fR \\fIINT\\fR\n"));
  EXPECT_THAT(page, HasSubstr("In 1 \\- 100. Environment: SHARE.\n"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-all\\fR\nAll of them.\n")) << "a flag takes nothing";
}

TEST_F(Pages, TheManualHidesWhatHelpHides) {
  EXPECT_THAT(manual_page(app, subject), Not(HasSubstr("shelf")));
  EXPECT_THAT(completion(app, subject), Not(HasSubstr("shelf")));
}

TEST_F(Pages, TextIsNoCommandOfTheManuals) {
  const std::string page = manual_page(app, subject);
  EXPECT_THAT(page, HasSubstr("Starts one\n\\&.or more"));
  EXPECT_THAT(page, HasSubstr("C:\\ex"));
}

TEST_F(Pages, TheCompletionKnowsCommandsOptionsAndChoices) {
  const std::string script = completion(app, subject);
  EXPECT_THAT(script, HasSubstr("'') words='run -h --help --strays' ;;"));
  EXPECT_THAT(script, HasSubstr("run) words='-h --help -p --percent --all' ;;"));
  EXPECT_THAT(script, HasSubstr("' --strays') words='end report' ;;"));
  EXPECT_THAT(script, HasSubstr("'run -p'|'run --percent') return ;;"));
  EXPECT_THAT(script, Not(HasSubstr("list --short"))) << "no command takes a thing";
  EXPECT_THAT(script, HasSubstr("complete -o default -F _fire_thing fire-thing\n"));
}

TEST_F(Pages, TheCompletionAsksTheProgramForWhatItLists) {
  app.add_subcommand("end", "Ends one")->add_option("NAME", name, "Whom")->type_name("THING");
  const std::string script = completion(app, subject);
  EXPECT_THAT(script, HasSubstr("$command == @(end) ]]"));
  EXPECT_THAT(script, HasSubstr("\"${COMP_WORDS[0]}\" list --short \"${asked[@]}\""));
  EXPECT_THAT(script, HasSubstr("--strays) asked=(--strays \"${COMP_WORDS[at + 1]}\") ;;"));
}

TEST_F(Pages, TheManualHasExamples) {
  EXPECT_THAT(manual_page(app, subject),
              HasSubstr(".SH EXAMPLES\n.PP\nStarts a\\-b:\n.PP\n.RS 4\n.nf\n"
                        "\\fBfire\\-thing run \\-\\-all a\\-b\\fR\n.fi\n.RE\n.SH SEE ALSO"));
}

}  // namespace
}  // namespace firebreak::pages
