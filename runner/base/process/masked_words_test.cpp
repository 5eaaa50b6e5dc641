// SPDX-License-Identifier: MIT
#include "base/process/masked_words.h"

#include <gtest/gtest.h>

namespace stepgate {
namespace {

TEST(MaskedWords, WordsThatLookLikeSecretsAreHidden) {
  const std::string token = "ZbQ8rT2kLw9XcV4nHs7JpDf1YmGa5EuC";
  for (const Command& secret :
       {Command{"python3", "--token", "abc"}, Command{"python3", "--hf-token=abc"},
        Command{"python3", "--API_KEY", "abc"}, Command{"python3", "hf_abcdefghijkl"},
        Command{"python3", "sk-abcdefghijkl"}, Command{"python3", "ghp_abcdefghijkl"},
        Command{"python3", token}, Command{"python3", "--run=" + token},
        Command{"python3", "db_password=abc"}}) {
    const std::string words = to_text(masked(secret));
    EXPECT_NE(words.find("***"), std::string::npos) << to_text(secret);
    EXPECT_EQ(words.find("abc"), std::string::npos) << words;
    EXPECT_EQ(words.find(token), std::string::npos) << words;
  }
}

TEST(MaskedWords, WordsOfUsualCommandsStay) {
  const Command usual{"python3",
                      "-m",
                      "torch.distributed.run",
                      "--nproc_per_node=4",
                      "train.py",
                      "--data",
                      "/data/imagenet/a-folder-with-a-rather-long-name/train",
                      "--tokenizer=bert-base-uncased-and-longer-than-32-letters"};
  const Command kept{"./a.out", "0123456789012345678901234567890123456789"};
  EXPECT_EQ(masked(kept), kept);
  Command shown = masked(usual);
  EXPECT_EQ(shown[4], "train.py");
  EXPECT_EQ(shown[6], usual[6]);
}

}  // namespace
}  // namespace stepgate
