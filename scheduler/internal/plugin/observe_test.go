package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kubemetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"gpushare.io/scheduler/internal/inspection"
	"gpushare.io/scheduler/internal/sharenode"
)

// metrics returns the values of the plugin's metrics, by name and value of the label.
func (w *world) metrics() map[string]float64 {
	w.t.Helper()
	if w.registry == nil {
		w.registry = kubemetrics.NewKubeRegistry()
		w.registry.CustomMustRegister(w.factory.core.metrics)
	}
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			name := strings.TrimPrefix(family.GetName(), "gpushare_")
			for _, label := range metric.Label {
				name += " " + label.GetValue()
			}
			found[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return found
}

func (w *world) waitMetric(name string, value float64) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s is %v", name, value), func() bool { return w.metrics()[name] == value })
}

// logs are lines that klog has written since.
type logs struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *logs) Write(line []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(line)
}

// with returns the lines that have a text.
func (l *logs) with(text string) []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var found []string
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// captureLogs keeps what klog writes, at its default verbosity, until the test ends.
func captureLogs(t *testing.T) *logs {
	t.Helper()
	state, written := klog.CaptureState(), &logs{}
	klog.LogToStderr(false)
	klog.SetOutput(written)
	t.Cleanup(func() {
		klog.Flush()
		klog.SetOutput(bytes.NewBuffer(nil))
		state.Restore()
	})
	return written
}

func TestMetricsOfPodsThatWaitAndAreBound(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 2, "x", 0, 10), node("gpu-2", 1), &sharenode.Node{Name: "cpu-1"})
		w.waitMetric("extender_nodes "+memory, 2)
		w.waitMetric("extender_largest_free "+memory, 16)
		w.create("large", 17)
		w.waitMetric("extender_waiting_pods CardsTooSmall", 1)
		w.create("too-many", 65537)
		w.waitMetric("extender_waiting_pods TooManyUnits", 1)
		w.create("fits", 16)
		w.waitBound("fits")
		w.waitMetric("extender_binds_total Bound", 1)
		w.waitMetric("extender_reservations under_way", 0)
		w.waitMetric("extender_reservations confirmed", 0)
		if found := w.metrics(); found["extender_waiting_pods NotShared"] != 0 || found["extender_refusals_total NotShared"] < 1 {
			t.Errorf("nodes without cards: %v", found)
		}
		w.delete("large")
		w.delete("too-many")
		w.waitMetric("extender_waiting_pods CardsTooSmall", 0)
		w.waitMetric("extender_waiting_pods TooManyUnits", 0)
	})
}

func TestAPodThatIsGoneDuringItsAttemptIsNotCounted(t *testing.T) {
	b := newBench(t, node("gpu-1", 1, "uid-x", 0, 16))
	b.core.api = &connection{shareNodes: watched{}}
	pod, store := podOf("a", 4), b.handle.SharedInformerFactory().Core().V1().Pods().Informer().GetStore()
	b.begin(pod)
	if b.fits(pod) {
		t.Fatal("it fits")
	}
	if err := store.Delete(pod); err != nil {
		t.Fatal(err)
	}
	b.podHandler().OnDelete(pod)
	b.PostFilter(context.Background(), b.state, pod, framework.NewDefaultNodeToStatus())
	counted := &world{server: &server{t: t}, factory: &Factory{core: b.core}}
	found := counted.metrics()
	if found["extender_waiting_pods NoRoom"] != 0 || found["extender_refusals_total NoRoom"] != 1 {
		t.Errorf("found: %v", found)
	}
}

func TestARefusedBindingIsCountedAndLoggedOnce(t *testing.T) {
	written := captureLogs(t) // until the scheduler has ended, with all it has started
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1))
		w.mutex.Lock()
		refusals := 0
		w.onBind = func(*v1.Binding) error {
			if refusals++; refusals == 1 {
				return apierrors.NewForbidden(pods.GroupResource(), "a", nil)
			}
			return nil
		}
		w.mutex.Unlock()
		w.create("a", 4)
		w.waitBound("a")
		w.waitMetric("extender_binds_total Refused", 1)
		w.waitMetric("extender_binds_total Bound", 1)
		klog.Flush()
		lines := written.with("A pod was not bound")
		if len(lines) != 1 || !strings.Contains(lines[0], `pod="default/a" node="gpu-1" cards="GPU-0"`) {
			t.Errorf("logged: %q", lines)
		}
	})
}

func TestNothingIsLoggedForAnAttempt(t *testing.T) {
	written := captureLogs(t) // until the scheduler has ended, with all it has started
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1))
		w.create("first", 1) // the first attempt of all says that we begin
		w.waitBound("first")
		klog.Flush()
		before := len(written.with(""))
		w.create("fits", 4)
		w.create("large", 17)
		w.waitBound("fits")
		w.waitRefused("large")
		klog.Flush()
		if lines := written.with("")[before:]; len(lines) != 0 {
			t.Errorf("logged: %q", lines)
		}
	})
}

func TestWhatAnOperatorHasToKnowIsLoggedOnce(t *testing.T) {
	written := captureLogs(t)
	b := newBench(t, node("gpu-1", 1))
	closed := node("gpu-1", 1)
	closed.ClosedReason = "its plugin is silent"
	for range 2 {
		b.setShareNode(closed)
	}
	b.setShareNode(node("gpu-1", 1))
	copied := boundPod("copy", "GPU-0", 4)
	copied.UID = "another"
	for range 2 {
		b.cluster.SetPod(copied)
	}
	elsewhere := boundPod("elsewhere", "GPU-0", 4)
	elsewhere.Spec.NodeName = "gpu-2"
	b.cluster.SetPod(elsewhere)
	klog.Flush()
	for text, want := range map[string]string{
		"takes no pods that ask for cards":    `node="gpu-1" reason="its plugin is silent"`,
		"takes pods that ask for cards again": `node="gpu-1"`,
		`pod="default/copy"`:                  `"A pod has a wrong annotation"`,
		`pod="default/elsewhere"`:             "names another node",
	} {
		if lines := written.with(text); len(lines) != 1 || !strings.Contains(lines[0], want) {
			t.Errorf("%s: logged %q", text, lines)
		}
	}
}

func TestInspectionSaysWhoHasWhatOfACard(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 2, "gone", 1, 6))
		proceed := make(chan struct{})
		w.mutex.Lock()
		w.onBind = func(*v1.Binding) error { <-proceed; return nil }
		w.mutex.Unlock()
		w.create("a", 10)
		w.waitMetric("extender_binds_under_way", 1)
		w.waitMetric("extender_reservations under_way", 1)
		reserved := w.inspectCard(1)
		if reserved.Allocated != 16 || reserved.Reserved != 10 {
			t.Errorf("while it is being bound: %+v", reserved)
		}
		close(proceed)
		w.waitBound("a")
		w.waitMetric("extender_reservations confirmed", 0)
		card := w.inspectCard(1)
		want := []inspection.Pod{{UID: "gone", Units: 6}, {Namespace: "default", Name: "a", UID: "uid-a", Units: 10}}
		if fmt.Sprint(card.Pods) != fmt.Sprint(want) || card.Lock != "memory" || card.Units != 16 || card.Reserved != 0 {
			t.Errorf("card: %+v", card)
		}
		if free := w.inspectCard(0); free.Allocated != 0 || len(free.Pods) != 0 {
			t.Errorf("the other card: %+v", free)
		}
	})
}

// inspectCard returns what the inspection, as JSON, says of a card of the first node.
func (w *world) inspectCard(index int) inspection.Card {
	w.t.Helper()
	text, err := json.Marshal(inspection.New(w.factory.core.inspect))
	if err != nil {
		w.t.Fatal(err)
	}
	var read struct{ Nodes []inspection.Node }
	if err := json.Unmarshal(text, &read); err != nil {
		w.t.Fatal(err)
	}
	return read.Nodes[0].Cards[index]
}
