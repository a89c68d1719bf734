package supervisor

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gpushare.io/localcluster/internal/config"
)

func TestOnlyOneSupervisorHoldsADirectory(t *testing.T) {
	directory := config.Directory(t.TempDir())
	lock, err := acquire(directory)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := acquire(directory); err == nil || !strings.Contains(err.Error(), "already running") {
		t.Errorf("second supervisor: %v", err)
	}
	if content, err := os.ReadFile(directory.Lock()); err != nil || string(content) != strconv.Itoa(os.Getpid()) {
		t.Errorf("lock says %q (%v)", content, err)
	}
	lock.Close()
	if again, err := acquire(directory); err != nil {
		t.Errorf("after the first has gone: %v", err)
	} else {
		again.Close()
	}
}

func TestClearLeavesWhatIsNotTheClusters(t *testing.T) {
	directory := config.Directory(t.TempDir())
	ours, foreign := directory.PKI("ca.key"), filepath.Join(string(directory), "notes")
	for _, path := range []string{ours, foreign} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := clearLeftovers(directory); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(ours); !os.IsNotExist(err) {
		t.Errorf("old keys are still there: %v", err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error(err)
	}
}

func TestAnAddressInUseIsNamed(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = startInner(config.Cluster{Listen: taken.Addr().String()}, "config.json")
	if err == nil || !strings.Contains(err.Error(), taken.Addr().String()) || !strings.Contains(err.Error(), "port 0") {
		t.Errorf("error is %v", err)
	}
}
