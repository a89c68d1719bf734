"""The image by which real containers run the cluster's own program."""

import hashlib
import json
import tarfile
from pathlib import Path

from gpushare_localcluster.build.binary import Binary
from gpushare_localcluster.build.minors import minor_named
from gpushare_localcluster.build.programs_image import PAUSE, write_programs_image


def test_the_image_is_the_program_under_both_names(tmp_path: Path) -> None:
    program, archive = tmp_path / "localcluster", tmp_path / "programs.tar"
    program.write_bytes(b"\x7fELF program")
    program.chmod(0o755)
    minor = minor_named("1.34")
    write_programs_image(Binary(path=program, programs=tmp_path, minor=minor), archive)
    with tarfile.open(archive) as content:
        content.extraction_filter = getattr(tarfile, "data_filter", None)  # Python before 3.11.4 has none
        content.extractall(tmp_path / "image")  # noqa: S202 - just written by us
    (manifest,) = json.loads((tmp_path / "image/manifest.json").read_text())
    configuration = json.loads((tmp_path / "image" / manifest["Config"]).read_text())
    layer = tmp_path / "image" / manifest["Layers"][0]
    assert manifest["RepoTags"] == [f"registry.k8s.io/kube-scheduler:{minor.version}", PAUSE]
    assert configuration["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer.read_bytes()).hexdigest()}"]
    with tarfile.open(layer) as files:
        assert files.getmember("usr/local/bin/kube-scheduler").mode & 0o111
        assert files.getmember("pause").linkname == "usr/local/bin/kube-scheduler"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["image", "localcluster", "programs.tar"]


def test_pods_are_kept_by_the_image_that_nodes_name() -> None:
    """The Go side of the local cluster has the same name of its own."""
    text = (Path(__file__).resolve().parents[3] / "localcluster/internal/config/config.go").read_text()
    assert f'PauseImage = "{PAUSE}"' in text
