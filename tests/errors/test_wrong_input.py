"""What a user can get wrong at the start: each ends at once, says where and what to do, writes nothing."""

from __future__ import annotations

import pathlib
import textwrap
import venv

import pytest
from harness import ENVIRONMENT, RESULT, USAGE, USER_CODE, Kernelwright

KERNEL = (pathlib.Path(__file__).parent / "data" / "double.py").read_text()


def write(folder: pathlib.Path, text: str, name: str = "kernel.py") -> pathlib.Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


def test_no_such_file(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    missing = tmp_path / "absent.py"
    shared.optimize(f"{missing}::f").expect(USAGE).says("absent.py", "no such file")


def test_a_folder_is_not_a_file(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    shared.optimize(f"{tmp_path}::f").expect(USAGE).says(tmp_path.name)


def test_no_such_function_names_those_that_exist(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, KERNEL)
    result = shared.optimize(f"{path}::duoble").expect(USAGE)
    result.says("duoble", "double", "kernel.py")


def test_no_such_method_of_a_class(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, "class Layer:\n    def forward(self, x):\n        return x\n")
    shared.optimize(f"{path}::Layer.backward").expect(USAGE).says("Layer.backward", "Layer.forward")


def test_no_inputs_shows_how_to_give_them(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, KERNEL.replace("# kernelwright: x=f32[64,256]\n", ""))
    shared.optimize(f"{path}::double").expect(USAGE, USER_CODE).says("--inputs", "# kernelwright:")


def test_inputs_of_an_unknown_dtype(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, KERNEL)
    result = shared.optimize(f"{path}::double", "--inputs", "x=f12[64,256]").expect(USAGE)
    result.says("f12", "--inputs", "bf16", "f32")


def test_comment_with_an_unknown_dtype_names_its_line(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, KERNEL.replace("x=f32[", "x=float99["))
    shared.optimize(f"{path}::double").expect(USAGE, USER_CODE).says("float99", "kernel.py:9")


def test_dtype_that_the_chip_does_not_have(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, KERNEL)
    shared.optimize(f"{path}::double", "--inputs", "x=c128[64,256]").expect(USAGE, USER_CODE).says("c128")


def test_malformed_inputs_point_at_the_column(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, KERNEL)
    shared.optimize(f"{path}::double", "--inputs", "x=f32[64,").expect(USAGE).says(
        "--inputs, column 10", "[4096,128]"
    )


def test_inputs_that_do_not_fit_the_function(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, KERNEL)
    result = shared.optimize(f"{path}::double", "--inputs", "weight=f32[64,256]")
    result.expect(USAGE, USER_CODE).says("weight", "double")


def test_syntax_error_names_its_line(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, KERNEL.replace("(x, rows=8):", "(x, rows=8:"))
    shared.optimize(f"{path}::double").expect(USER_CODE).says("kernel.py:10", "syntax")


def test_syntax_error_in_an_imported_file(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    write(tmp_path, "def helper(:\n    pass\n", "helper.py")
    path = write(tmp_path, "import helper\n" + KERNEL)
    shared.optimize(f"{path}::double").expect(USER_CODE).says("helper.py", "line 1")


def test_import_of_a_missing_package(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, "import no_such_package_of_mine\n" + KERNEL)
    result = shared.optimize(f"{path}::double").expect(USER_CODE)
    result.says("no_such_package_of_mine", "kernel.py:1")


def test_exception_while_importing(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, KERNEL + "\n\nraise RuntimeError('my own words')\n")
    shared.optimize(f"{path}::double").expect(USER_CODE).says("my own words", "kernel.py:21")


def test_exit_while_importing_is_an_error_of_the_file(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, KERNEL + "\n\nimport os\nos._exit(0)\n")
    shared.optimize(f"{path}::double").expect(USER_CODE).says("kernel.py")


def test_exception_while_tracing_names_the_line(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, KERNEL.replace("2 * x_ref[...]", "undefined_name * x_ref[...]"))
    shared.optimize(f"{path}::double").expect(USER_CODE).says("undefined_name", "kernel.py:6")


def test_function_without_a_kernel(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, "# kernelwright: x=f32[8,128]\ndef plain(x):\n    return x + 1\n")
    result = shared.run("tune", f"{path}::plain", "--chip", "v5e", "--json")
    result.expect(RESULT, USAGE, USER_CODE).says("pallas_call")


def test_unknown_chip_lists_the_known_ones(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, KERNEL)
    result = shared.optimize(f"{path}::double", "--chip", "v99x").expect(USAGE)
    result.says("v99x", "v5e", "v5p", "v6e", "tpu7x")


def test_reference_that_does_not_exist(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, KERNEL)
    result = shared.optimize(f"{path}::double", "--reference", f"{path}::oracle").expect(USAGE)
    result.says("oracle")


@pytest.mark.parametrize("option", ["--no-such-option", "--timeout=minus", "--budget=3parsecs"])
def test_wrong_options_name_the_option(shared: Kernelwright, tmp_path: pathlib.Path, option: str) -> None:
    path = write(tmp_path, KERNEL)
    shared.optimize(f"{path}::double", option).expect(USAGE).says(option.partition("=")[0].lstrip("-"))


def test_no_command_says_where_help_is(shared: Kernelwright) -> None:
    shared.run().expect(USAGE).says("--help")


def test_wrong_command_names_those_that_exist(shared: Kernelwright) -> None:
    shared.run("optimise").expect(USAGE).says("did you mean 'optimize'", "tune", "doctor")


def test_interpreter_without_jax(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    bare = tmp_path / "bare"
    venv.create(bare, with_pip=False, symlinks=True)
    path = write(tmp_path / "project", KERNEL)
    result = shared.optimize(f"{path}::double", "--python", str(bare)).expect(ENVIRONMENT)
    result.says("jax", str(bare / "bin" / "python"), "install")


def test_environment_without_jax_is_not_passed_over(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path / "project", KERNEL)
    venv.create(tmp_path / "project" / ".venv", with_pip=False, symlinks=True)
    result = shared.optimize(f"{path}::double").expect(ENVIRONMENT)
    result.says("jax", str(tmp_path / "project" / ".venv"))


def test_interpreter_that_does_not_exist(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, KERNEL)
    result = shared.optimize(f"{path}::double", "--python", str(tmp_path / "no-python"))
    result.expect(ENVIRONMENT).says("no-python")


def test_interpreter_that_is_no_python(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, KERNEL)
    result = shared.optimize(f"{path}::double", "--python", "/bin/false").expect(ENVIRONMENT)
    result.says("/bin/false")


def test_no_environment_at_all_says_how_to_make_one(kw: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, KERNEL)
    result = kw.optimize(f"{path}::double", env={"KERNELWRIGHT_HOME": str(tmp_path / "nothing")})
    result.expect(ENVIRONMENT).says("scripts/setup", "--python")


def test_errors_as_json_have_the_same_words(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, KERNEL)
    result = shared.optimize(f"{path}::duoble").expect(USAGE)
    error = result.json["error"]
    assert error["kind"] in ("usage", "not_found")
    assert "duoble" in error["message"] and "double" in error["message"]
    # Wrong arguments end before there is a run; the object has the same form.
    early = shared.run("optimize", "--json").expect(USAGE).json["error"]
    assert early["kind"] == "usage" and early["remedy"]


def test_wrong_input_leaves_the_file_as_it_was(shared: Kernelwright, tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, KERNEL.replace("2 * x_ref[...]", "undefined_name * x_ref[...]"))
    before = path.read_bytes(), path.stat().st_mtime_ns
    shared.optimize(f"{path}::double", "--apply").expect(USER_CODE)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [p.name for p in tmp_path.iterdir()] == ["kernel.py"], "nothing beside the user's file"
