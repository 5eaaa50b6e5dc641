# SPDX-License-Identifier: MIT
"""compare_pytorch_test.py REPOSITORY STEPGATE: the shapes that ci/compare_pytorch.py draws, what stepgate plans of them, and the table and
exit code of played times."""
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile

REPOSITORY, STEPGATE = map(pathlib.Path, sys.argv[1:])
sys.dont_write_bytecode = True
os.environ["STEPGATE_BASELINES"] = str(REPOSITORY / "baselines")  # of the simulated device
sys.path.insert(0, str(REPOSITORY / "ci"))
import compare_pytorch as compared


def run(*words):
    """Standard output, standard error, and what the script ends with."""
    sys.argv = ["compare_pytorch.py", *words]
    out, errors, ended = io.StringIO(), io.StringIO(), None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            ended = compared.main()
        except SystemExit as refused:
            ended = refused.code
    return out.getvalue(), errors.getvalue(), ended


# Every shape is in the ranges, of either kind of blocks and size of heads; a seed draws the same again.
drawn = [name for seed in range(40) for name in compared.drawn_shapes(10, seed)]
assert all(map(compared.is_in_the_ranges, drawn)) and len(set(drawn)) > 350, len(set(drawn))
sizes = {(compared.is_llama(name), hidden // heads) for name in drawn for _, _, hidden, _, heads, _ in [compared.SHAPES[name]]}
assert sizes == {(llama, size) for llama in (False, True) for size in compared.HEAD_SIZES}, sizes
assert compared.drawn_shapes(10, 7) == compared.drawn_shapes(10, 7) != compared.drawn_shapes(10, 8)
for outside in ("d448l4h7t1024b8", "d2112l4h33t1024b8", "d1024l25h16t1024b8", "d1024l4h16t384b16", "d1024l4h16t1000b8", "d1024l4h16t8320b2",
                "d1024l4h16t1024b3", "d1024l4h16t1024b33", "d1024l4h4t1024b8", "d2048l24h16t8192b4"):  # the last is too large
    assert compared.is_known(outside) and not compared.is_in_the_ranges(outside), outside
assert not compared.is_known("d1024l4h16t1024") and all(map(compared.is_known, ("t4096", "t8192", "llamat4096")))

# Stepgate plans what is drawn, in both orders, and needs less than the script reckons.
for name in [*compared.drawn_shapes(4, 1), "t4096", "t8192", "llamat4096"]:
    with tempfile.TemporaryDirectory() as folder:
        scenario = pathlib.Path(folder, "compared.toml")
        scenario.write_text(compared.scenario_of(name, compared.TIMED))
        for way in compared.ways_of(name, False, False, None)[1]:
            settings = [word for setting in compared.OWN_WAYS[way] for word in ("--set", setting)]
            planned = subprocess.run([STEPGATE, "plan", scenario, *settings], capture_output=True, text=True, check=False)
            assert planned.returncode == 0, (name, way, planned)

# A figure is that of sums in a fixed order, and of any order only when it is said.
PLAYED = {"graph": 10.0, "any order": 8.0, "heuristic": 11.0, "compile": 12.0}
compared.time_stepgate = compared.time_pytorch = lambda *request: {"milliseconds": PLAYED[request[-1]], "peak": 2**30}
once = ("stepgate", "--repeats", "1")
out, _, ended = run(*once, "--shapes", "t4096")
assert ended is None and "| 12.00 ms | 10.00 ms |" in out and "| 1.200 | 8.00 ms, 1.500 |" in out, out
out, _, _ = run(*once, "--shapes", "t4096", "--any-order")
assert "| 12.00 ms | 8.00 ms |" in out and "| 1.500 | 8.00 ms, 1.500 |" in out, out

# A ratio that is too low ends it with 1, and names the shape.
assert run(*once, "--shapes", "t4096", "--at-least", "1.2")[2] is None
assert run(*once, "--shapes", "t4096,t8192", "--at-least", "1.21")[2] == "lower than 1.21: t4096 1.200, t8192 1.200"
assert run(*once, "--shapes", "t4096", "--at-least", "1.21", "--any-order")[2] is None

# The script says what it drew, and by which seed, and every shape has its row.
out, _, _ = run(*once, "--drawn", "3", "--seed", "5")
assert f"--drawn 3 --seed 5: {', '.join(compared.drawn_shapes(3, 5))}\n" in out and out.count("| 1.200 |") == 3, out
assert "--drawn 2 --seed " in run(*once, "--drawn", "2")[0]
_, errors, ended = run(*once, "--shapes", "t4095")
assert ended == 2 and "no shape is called t4095" in errors, errors

# Kernels of both are summed by kind, whatever they are called, and each is listed. A run of the simulated device has the same record.
SAMPLED = {"nvjet_tst_192x192_NNN": 3.0, "void cublasLt::splitKreduce_kernel<32>": 0.5, "flash_bprop_wgmma_f16": 2.0,
           "compute_dot_do_o_specialized": 0.125, "FillFunctor<int>": 0.125, "cudnn_flash_fprop_wgmma": 1.0, "multi_tensor_apply_kernel": 0.75, "triton_red_fused__log_softmax_2": 0.5, "triton_poi_fused_silu_8": 4.0}
compared.time_pytorch = lambda *request: {"milliseconds": 12.5, "kernels": SAMPLED}
ran = compared.subprocess.run
compared.subprocess.run = lambda command, **how: ran(["simulated" if word == "cuda" else word for word in command], **how)
out, _, ended = run(str(STEPGATE), "--kernels", "d512")
compared.subprocess.run = ran
rows = {row[1].strip(): [float(cell.removesuffix(" ms ")) for cell in row[2:4]] for line in out.splitlines()[2:] if len(row := line.split("|")) > 3}
assert ended is None and list(rows) == [*compared.KINDS, "sum"], (out, ended)
assert [theirs for theirs, _ in rows.values()] == [2.25, 1.0, 3.5, 0.75, 0.5, 4.0, 12.0], out
assert all(ours > 0 for _, ours in rows.values()) and abs(sum(ours for _, ours in rows.values()) - 2 * rows["sum"][1]) < 0.05, out
assert "torch.compile, 12.5 ms:\n     4.000 ms  triton_poi_fused_silu_8\n" in out and " ms  matmul\n" in out, out
assert run("stepgate", "--kernels", "resnet50b64")[2] == 2
