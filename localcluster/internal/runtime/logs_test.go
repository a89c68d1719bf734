package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestLongLinesAreSplit(t *testing.T) {
	ended := startNode(t).pod("web").run(script("head -c 40000 /dev/zero | tr '\\0' x; echo"))
	lines := ended.logLines()
	equal(t, "lines", len(lines), 3)
	for i, want := range []struct {
		prefix string
		length int
	}{{"stdout P ", longestLine}, {"stdout P ", longestLine}, {"stdout F ", 40000 - 2*longestLine}} {
		text, found := strings.CutPrefix(lines[i], want.prefix)
		equal(t, "prefix", found, true)
		equal(t, "length", len(text), want.length)
	}
}

func TestReopenedLogGoesOnInANewFile(t *testing.T) {
	running := startNode(t).pod("web").start(script("echo one; while [ ! -e /tmp/go ]; do sleep 0.02; done; echo two"))
	running.awaitOutput("one")
	path := running.status().GetLogPath()
	must(t, os.Rename(path, path+".1"))
	_, err := running.ReopenContainerLog(running.ctx(), &cri.ReopenContainerLogRequest{ContainerId: running.id})
	must(t, err)
	running.exec("touch", "/tmp/go")
	running.awaitExit()
	equal(t, "new log", running.output(), "two\n")
	rotated, err := os.ReadFile(path + ".1")
	must(t, err)
	equal(t, "old log ends with the first line", strings.HasSuffix(string(rotated), "stdout F one\n"), true)
}

func TestContainerWithoutALogPathRuns(t *testing.T) {
	ended := startNode(t).pod("web").run(script("echo lost", func(c *cri.ContainerConfig) { c.LogPath = "" }))
	equal(t, "exit code", ended.status().GetExitCode(), 0)
	equal(t, "log", filepath.Clean(ended.status().GetLogPath()), os.DevNull)
}
