package ledger

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/sharenode"
)

// The table of cases says what is free where the scheduler's view and ours agree. Here is what the scheduler alone
// brings about: a view that is ahead of ours, or behind it, copies for what-if questions, several goroutines.

const memory = "gpushare.io/memory"

func shareNode(t *testing.T, cards string) *sharenode.Node {
	t.Helper()
	share, err := sharenode.Read([]byte(`{"metadata":{"name":"n"},"spec":{"mode":"Memory","memoryUnit":"1Gi"},"status":
		{"memoryUnit":"1Gi","conditions":[{"type":"Registered","status":"True"}],"cards":[` + cards + `]}}`))
	if err != nil || share.ClosedReason != "" {
		t.Fatal(err, share.ClosedReason)
	}
	return share
}

const (
	emptyCard = `{"uuid":"c","units":16,"health":"Healthy"}`
	cardOfA   = `{"uuid":"c","units":16,"health":"Healthy","allocatedUnits":6,"pods":[{"uid":"a","units":6}]}`
)

func boundPod(t *testing.T, uid string, units int) *Pod {
	t.Helper()
	text := fmt.Sprintf(`{"node":"n","uid":%q,"at":"","unit":"1Gi","containers":{},"cards":{"c":%d}}`, uid, units)
	pod, problems := ReadPod(uid, "n", map[string]string{"gpushare.io/allocation": text}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return pod
}

func free(node *Node) int64 { return node.Room()[0].Greatest }

func asking(units string) cards.Request {
	container := cards.Container{Name: "main", Limits: map[string]string{memory: units}}
	return cards.ReadRequest(cards.Pod{Containers: []cards.Container{container}},
		[]cards.Resource{{Name: memory, Class: cards.Memory}})
}

func TestTheSchedulersViewCounts(t *testing.T) {
	a := boundPod(t, "a", 6)
	tests := map[string]struct {
		change func(*Ledger)
		shown  []*Pod
		free   int64
	}{
		"a pod that only the scheduler has seen": {func(*Ledger) {}, []*Pod{a}, 10},
		"a pod that we have seen first":          {func(book *Ledger) { book.SetPod(a) }, nil, 10},
		"a pod that both have seen counts once":  {func(book *Ledger) { book.SetPod(a) }, []*Pod{a}, 10},
		"a pod whose end the scheduler has seen first, and whose units come back": {
			func(book *Ledger) {
				book.SetPod(a)
				book.SetShareNode(shareNode(t, cardOfA))
				book.SetShareNode(shareNode(t, emptyCard))
			}, nil, 16,
		},
		"a pod whose end we have seen first": {
			func(book *Ledger) {
				book.SetShareNode(shareNode(t, cardOfA))
				book.SetPod(a)
				book.PodGone("a", time.Unix(0, 0))
				book.SetShareNode(shareNode(t, emptyCard))
			}, []*Pod{a}, 10,
		},
		"a reservation that the scheduler does not show yet": {
			func(book *Ledger) { reserve(t, book, "r", "4") }, nil, 12,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			book := New()
			book.SetShareNode(shareNode(t, emptyCard))
			test.change(book)
			if got := free(book.Node("n", test.shown)); got != test.free {
				t.Errorf("%d units are free, not %d", got, test.free)
			}
		})
	}
}

func reserve(t *testing.T, book *Ledger, uid, units string) {
	t.Helper()
	holder, _ := book.Node("n", nil).Reserve(uid, asking(units))
	if holder == nil {
		t.Fatal("does not fit")
	}
	if err := book.Reserve(holder); err != nil {
		t.Fatal(err)
	}
}

func TestAPodGetsNoSecondShare(t *testing.T) {
	book := New()
	book.SetShareNode(shareNode(t, emptyCard))
	reserve(t, book, "r", "4")
	holder, _ := book.Node("n", nil).Reserve("r", asking("4"))
	if err := book.Reserve(holder); err == nil {
		t.Error("reserved twice")
	}
	book.PodGone("r", time.Unix(0, 0))
	if err := book.Reserve(holder); err == nil {
		t.Error("reserved while the kubelet may have it still")
	}
	if len(book.Expire(time.Unix(4, 0))) != 1 || len(book.Expire(time.Unix(4, 0))) > 0 {
		t.Error("freed not once")
	}
	if err := book.Reserve(holder); err != nil {
		t.Error(err)
	}
}

func TestWhatIf(t *testing.T) {
	book := New()
	book.SetShareNode(shareNode(t, cardOfA))
	node := book.Node("n", []*Pod{boundPod(t, "a", 6), boundPod(t, "b", 4)})
	copied := node.Clone()
	steps := []struct {
		name   string
		change func()
		free   int64
	}{
		{"as it is", func() {}, 6},
		{"one that the kubelet has would go", func() { copied.TakeAway("a") }, 12},
		{"twice the same", func() { copied.TakeAway("a") }, 12},
		{"both would go", func() { copied.TakeAway("b") }, 16},
		{"another one comes", func() { copied.Add(&Holder{UID: "x", Node: "n", Cards: []cards.Share{{Card: "c", Units: 3}}}) }, 13},
		{"it takes more", func() { copied.Add(&Holder{UID: "x", Node: "n", Cards: []cards.Share{{Card: "c", Units: 5}}}) }, 11},
		{"one that would go comes back by itself", func() { copied.Add(boundPod(t, "b", 4).holder) }, 7},
	}
	for _, step := range steps {
		if step.change(); free(copied) != step.free {
			t.Errorf("%s: %d units are free, not %d", step.name, free(copied), step.free)
		}
		if free(node) != 6 {
			t.Fatalf("%s: the original has changed", step.name)
		}
	}
}

func TestNodesWithoutAGPUShareNode(t *testing.T) {
	node := New().Node("n", []*Pod{boundPod(t, "a", 6)})
	if _, refusal := node.Fit(asking("1")); refusal == nil || refusal.Kind != NotShared {
		t.Error(refusal)
	}
	if node.Choose(asking("1")) != nil || node.Room() != nil || node.Cards(cards.Memory) != nil {
		t.Error("there is something to have")
	}
}

func TestUseFromSeveralGoroutines(t *testing.T) {
	book, a := New(), boundPod(t, "a", 6)
	shares := []*sharenode.Node{shareNode(t, emptyCard), shareNode(t, cardOfA)}
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for turn := range 200 {
				book.SetShareNode(shares[(worker+turn)%2])
				book.SetPod(a)
				ask(book.Node("n", []*Pod{a}))
				book.PodGone("a", time.Unix(int64(turn), 0))
				book.Expire(time.Unix(int64(turn+10), 0))
				book.Resources()
				book.Unreleased("n")
			}
		})
	}
	group.Wait()
}

// ask asks all that a scheduler asks of one node, which other goroutines ask as well.
func ask(node *Node) {
	node.Fit(asking("4"))
	node.Reserve("r", asking("4"))
	copied := node.Clone()
	copied.TakeAway("a")
	copied.Add(&Holder{UID: "x", Node: "n", Cards: []cards.Share{{Card: "c", Units: 3}}})
	free(copied)
}

func BenchmarkOneNodeOfAnAttempt(b *testing.B) {
	book := New()
	share, _ := sharenode.Read([]byte(benchmarkNode))
	book.SetShareNode(share)
	var pods []*Pod
	for number := range 16 {
		text := fmt.Sprintf(`{"node":"n","uid":"u%d","at":"","unit":"1Gi","containers":{},"cards":{"GPU-%d":1}}`,
			number, number%8)
		pod, _ := ReadPod(fmt.Sprintf("u%d", number), "n", map[string]string{"gpushare.io/allocation": text}, nil)
		book.SetPod(pod)
		pods = append(pods, pod)
	}
	request := asking("4")
	b.ReportAllocs()
	for b.Loop() {
		if _, refusal := book.Node("n", pods).Fit(request); refusal != nil {
			b.Fatal(refusal.Message)
		}
	}
}

var benchmarkNode = func() string {
	text := `{"metadata":{"name":"n"},"spec":{"mode":"Memory","memoryUnit":"1Gi"},"status":{"memoryUnit":"1Gi",
		"conditions":[{"type":"Registered","status":"True"}],"cards":[`
	for number := range 8 {
		if number > 0 {
			text += ","
		}
		text += fmt.Sprintf(`{"uuid":"GPU-%d","index":%d,"units":16,"health":"Healthy","allocatedUnits":2,"pods":[
			{"uid":"u%d","units":1},{"uid":"u%d","units":1}]}`, number, number, number, number+8)
	}
	return text + "]}}"
}()
