// SPDX-License-Identifier: Apache-2.0
#include "agent/root/privileged_question.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace firebreak::agent {
namespace {

struct Said {
  const char* text;
  std::size_t attached = 0;
};

TEST(PrivilegedQuestions, AreWrittenAsTheyWereUnderstood) {
  const std::vector<Said> all = {{"prepare a"},
                                 {"clear 0b"},
                                 {"bound anchor"},
                                 {"start a -"},
                                 {"start 12b GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"},
                                 {"start 0anchor MIG-0a1b"},
                                 {"control a 3000 get_server_list"},
                                 {"control a 0 get_client_list 4711"},
                                 {"control a 1 terminate_client 4711 4712"},
                                 {"control a 1 get_server_status 4711"},
                                 {"control a 1 start_server -uid 0"},
                                 {"control a 1 shutdown_server 4711"},
                                 {"control a 120000 quit"},
                                 {"parked 7a 1"},
                                 {"parked a 0"},
                                 {"name a 4711"},
                                 {"driver-file fault_isolation_events"},
                                 {"driver-file fault_isolation_condemned"},
                                 {"give 1000", 1},
                                 {"give 4294967294", 1},
                                 {"mark 1", 1},
                                 {"probe guard"},
                                 {"probe spares"},
                                 {"known guard"},
                                 {"devices"}};
  for (const Said& each : all) {
    const auto question = privileged_question_from(each.text, each.attached);
    ASSERT_TRUE(question) << each.text;
    EXPECT_EQ(text_of(*question), each.text);
  }
}

/// The questions are those that an agent might ask which somebody has taken over.
TEST(PrivilegedQuestions, OfAnotherPlaceAreNone) {
  for (const char* text : {"prepare /etc",
                           "prepare ..",
                           "prepare ../a",
                           "prepare a/..",
                           "prepare a/b",
                           "prepare c",
                           "prepare",
                           "prepare ",
                           "prepare aa",
                           "prepare 0",
                           "prepare 1234a",
                           "prepare A",
                           "prepare a\n",
                           "prepare a b",
                           "prepare  a",
                           " prepare a",
                           "prepare a ",
                           "clear /run",
                           "start a",
                           "start a ..",
                           "start a /dev/null",
                           "start a -1",
                           "start a GPU-1,GPU-2",
                           "start a GPU-1 LD_PRELOAD=x",
                           "start a GPU=1",
                           "start ../a GPU-1",
                           "bound ..",
                           "parked ../a 1",
                           "driver-file ../../../../etc/shadow",
                           "driver-file /etc/shadow",
                           "driver-file fault_isolation_servers",
                           "driver-file",
                           "driver-file .",
                           "probe /bin/sh",
                           "probe",
                           "devices a",
                           "",
                           " ",
                           "run /bin/sh",
                           "Prepare a"})
    EXPECT_FALSE(privileged_question_from(text, 0)) << text;
}

TEST(PrivilegedQuestions, OfCommandsThatAreNotOursAreNone) {
  for (const char* text :
       {"control a 1", "control a 1 ", "control a get_server_list", "control a -1 get_server_list",
        "control a 120001 get_server_list", "control a 99999999999999999999 quit", "control a 1 quit -f",
        "control a 1 quit\nstart_server -uid 0", "control a 1 get_server_list\n",
        "control a 1 start_server -uid", "control a 1 start_server -uid -1",
        "control a 1 start_server -uid 1 2", "control a 1 get_client_list x",
        "control a 1 get_client_list 01", "control a 1 get_client_list 4294967295",
        "control a 1 set_default_active_thread_percentage 1", "control a 1 #",
        "control a 1 get_client_list #", "control .. 1 quit"})
    EXPECT_FALSE(privileged_question_from(text, 0)) << text;
}

TEST(PrivilegedQuestions, HaveNumbersThatFit) {
  for (const char* text : {"name a 0", "name a -1", "name a 4194305", "name a 1 2", "name a", "name a 1x",
                           "parked a 2", "parked a", "parked a 1 1", "parked a true"})
    EXPECT_FALSE(privileged_question_from(text, 0)) << text;
  for (const char* text : {"give 4294967295", "give -1", "give 18446744073709551616", "give 1 1", "give",
                           "give root", "give +1", "mark 2", "mark", "mark 1 1"})
    EXPECT_FALSE(privileged_question_from(text, 1)) << text;
}

TEST(PrivilegedQuestions, HaveAsManyDescriptorsAsTheyNeed) {
  EXPECT_FALSE(privileged_question_from("give 1000", 0));
  EXPECT_FALSE(privileged_question_from("give 1000", 2));
  EXPECT_FALSE(privileged_question_from("mark 1", 0));
  EXPECT_FALSE(privileged_question_from("prepare a", 1));
}

TEST(PrivilegedQuestions, AreShort) {
  EXPECT_FALSE(privileged_question_from("start a " + std::string(65, 'x'), 0));
  EXPECT_TRUE(privileged_question_from("start a " + std::string(64, 'x'), 0));
  EXPECT_FALSE(privileged_question_from("control a 1 quit" + std::string(200, ' '), 0));
}

TEST(PrivilegedDomains, HaveOneNameEach) {
  for (const std::size_t gpus : {0U, 1U}) {
    for (const char* name : {"a", "b", "anchor"}) EXPECT_EQ(gpu_of_domain(name, gpus), 0U) << name;
    for (const char* name : {"0a", "0b", "0anchor", "", "c"}) EXPECT_FALSE(gpu_of_domain(name, gpus)) << name;
  }
  EXPECT_EQ(gpu_of_domain("0a", 12), 0U);
  EXPECT_EQ(gpu_of_domain("1b", 12), 1U);
  EXPECT_EQ(gpu_of_domain("11anchor", 12), 11U);
  for (const char* name : {"a", "anchor", "00a", "000a", "12a", "1", "1c", ""})
    EXPECT_FALSE(gpu_of_domain(name, 12)) << name;
}

}  // namespace
}  // namespace firebreak::agent
