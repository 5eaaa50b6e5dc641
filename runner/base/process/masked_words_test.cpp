// SPDX-License-Identifier: MIT
#include "base/process/masked_words.h"

#include <gtest/gtest.h>

#include <random>

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

// Every command has the secret "Xq7" and nothing else that looks like it.
TEST(MaskedWords, SecretsWithinScriptsUrlsAndByTheNamesOfOptionsAreHidden) {
  for (const Command& secret :
       {Command{"sh", "-c", "TOKEN=Xq7 python3 train.py"},
        Command{"sh", "-c", "export A=1; API_KEY='Xq7 Xq7'\"Xq7\"Xq7 python3 train.py"},
        Command{"sh", "-c", "DB_PASSWORD=Xq7\\ Xq7,Xq7(Xq7 exec python3 train.py"},
        Command{"bash", "-lc", "python3 train.py --wandb-key \"Xq7\" --lr 1"},
        Command{"sh", "-c", "curl -H 'Authorization: Basic Xq7' -H \"X-Api-Key: Xq7\" host"},
        Command{"curl", "-H", "Authorization: Bearer Xq7"},
        Command{"sh", "-c", "send --header Bearer Xq7"},
        Command{"python3", "-c", "import wandb; wandb.login(key=\"Xq7\"); run(token = 'Xq7')"},
        Command{"python3", "-c", "import os; os.environ['HF_TOKEN'] = 'Xq7'"},
        Command{"python3", "train.py", R"({"api_key": "Xq7", "password":"Xq7"})"},
        Command{"git", "clone", "https://user:Xq7@host/x.git"},
        Command{"git", "clone", "https://Xq7@host/x.git"},
        Command{"train", "--db=postgres://user:Xq7/Xq7@host:5432/x"},
        Command{"train", "--db", "user:Xq7@host"},
        Command{"sh", "-c", "pip install git+https://user:Xq7@host/x@v1 && python3 train.py"},
        Command{"train", "s3://bucket/x?lr=1&token=Xq7"},
        Command{"train", "--authorization", "Xq7"},
        Command{"train", "--pwd", "Xq7"},
        Command{"train", "--pat", "Xq7"},
        Command{"train", "--wandb-key", "Xq7"},
        Command{"train", "--wandbKey=Xq7"},
        Command{"train", "--db_passwd", "Xq7"},
        Command{"train", "--client-credentials", "Xq7"},
        Command{"train", "--basic-auth", "Xq7"},
        Command{"train", "--passphrase=Xq7 Xq7"},
        Command{"train", "--bearer", "Xq7"},
        Command{"env", "TOKEN=Xq7 Xq7", "train"},
        Command{"train", "MYSQL_PWD=Xq7"}}) {
    const std::string words = to_text(masked(secret));
    EXPECT_EQ(words.find("Xq7"), std::string::npos) << words;
    EXPECT_NE(words.find("***"), std::string::npos) << words;
  }
  for (const std::string token :
       {"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "q83+Zm/0pLx1VdR7uKe+Yh2TsW9cNaB4",
        "eyJhbGciOiJIUzI1.eyJzdWIiOiIx.dozjgNryP4J3jVm"}) {
    for (const Command& secret : {Command{token}, Command{"--run=" + token}, Command{"a:" + token},
                                  Command{"sh", "-c", "train --run " + token + "; true"}}) {
      EXPECT_EQ(to_text(masked(secret)).find(token.substr(4, 20)), std::string::npos)
          << to_text(masked(secret));
    }
  }
}

TEST(MaskedWords, CommandsWithoutSecretsStay) {
  for (const Command& usual :
       {Command{"sh", "-c", "cd /data/runs/2024-11-27 && exec python3 -u train.py --lr 1e-3; true"},
        Command{"python3", "-c", "print('a: b', {1: 2}, x == 3)"},
        Command{"torchrun", "--master_addr=localhost", "--rdzv-endpoint", "host:29500", "x.py"},
        Command{"pip", "install", "git+https://github.com/owner/name@v1.2", "https://h:80/p@v"},
        Command{"train", "--author", "me", "--patience", "3", "--path", "/a/b", "--monitor", "x"},
        Command{"train", "--data", "s3://bucket/Llama3/checkpoints/run1/last/of/all/files1"},
        Command{"train", "a --", "", "'", "\\", "=", ":", "@", "://@", "@x:y"}}) {
    EXPECT_EQ(masked(usual), usual) << to_text(masked(usual));
  }
}

TEST(MaskedWords, TextOfChanceIsMaskedToItsEnd) {
  std::mt19937 random(3);
  constexpr std::string_view letters = "aT=:\"' -/@\\{}`;&7token";
  for (int turn = 0; turn < 20000; ++turn) {
    Command command(2);
    for (std::string& word : command) {
      for (auto length = random() % 24; length > 0; --length)
        word += letters[random() % letters.size()];
    }
    for (const std::string& word : masked(command)) EXPECT_LE(word.size(), 24 * 4);
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
