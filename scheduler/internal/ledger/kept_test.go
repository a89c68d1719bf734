package ledger

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/sharenode"
)

// What others keep of a node by its version has to be what the ledger would say anew, and they have to hear of all that
// becomes free, whatever has happened on other nodes.

// change is a ledger and a scheduler's view to which anything happens, in any order: events come late, or never.
type change struct {
	t      *testing.T
	random *rand.Rand
	book   *Ledger
	shown  map[string]map[string]*Pod
	now    time.Time
	// shownTo and known are what others keep by the node's version, by node.
	shownTo, known map[string]keptSums
}

type keptSums struct {
	version uint64
	pods    []*Pod
	node    *Node
}

func newChange(t *testing.T, seed uint64) *change {
	shown := map[string]map[string]*Pod{"n0": {}, "n1": {}}
	return &change{t: t, random: rand.New(rand.NewPCG(seed, 0)), book: New(), shown: shown,
		shownTo: map[string]keptSums{}, known: map[string]keptSums{}}
}

func (c *change) uid() string  { return fmt.Sprint("u", c.random.IntN(4)) }
func (c *change) node() string { return fmt.Sprint("n", c.random.IntN(2)) }
func (c *change) units() int64 { return 1 + c.random.Int64N(4) }

// take has something happen, and returns on which nodes more may be free.
func (c *change) take() []string {
	switch c.random.IntN(9) {
	case 0, 1:
		return c.book.SetShareNode(c.share())
	case 2, 3:
		return c.see(c.pod())
	case 4:
		delete(c.shown[c.node()], c.uid())
	case 5:
		return c.book.PodGone(c.uid(), c.now)
	case 6:
		c.now = c.now.Add(time.Duration(c.random.IntN(5)) * time.Second)
		return c.book.Expire(c.now)
	case 7:
		if c.random.IntN(3) == 0 {
			c.book.DropShareNode(c.node())
		}
		return c.book.Release(c.uid())
	case 8:
		units := []cards.Share{{Card: "c", Units: c.units()}}
		_ = c.book.Reserve(&Holder{UID: c.uid(), Node: c.node(), Cards: units})
	}
	return nil
}

func (c *change) share() *sharenode.Node {
	var pods []string
	for number := range 4 {
		if c.random.IntN(3) == 0 {
			pods = append(pods, fmt.Sprintf(`{"uid":"u%d","units":%d}`, number, c.units()))
		}
	}
	share, err := sharenode.Read(fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"mode":"Memory","memoryUnit":"1Gi",
		"dialect":"volcano.sh"},"status":{"memoryUnit":"1Gi","cards":[{"uuid":"c","units":16,"pods":[%s]}]}}`,
		c.node(), strings.Join(pods, ",")))
	if err != nil {
		c.t.Fatal(err)
	}
	return share
}

// pod returns a bound pod: with our annotation, perhaps of another node, with a replaced system's, or with none.
func (c *change) pod() *Pod {
	uid, node, written := c.uid(), c.node(), map[string]string{}
	switch c.random.IntN(4) {
	case 0, 1:
		written["gpushare.io/allocation"] = fmt.Sprintf(`{"node":%q,"uid":%q,"at":"","unit":"1Gi","containers":{},
			"cards":{"c":%d}}`, []string{node, c.node()}[c.random.IntN(2)], uid, c.units())
	case 2:
		written["volcano.sh/gpu-index"] = "0"
	}
	pod, problems := ReadPod(uid, node, written, func() cards.Request {
		limits := map[string]string{"volcano.sh/gpu-memory": "3"}
		return cards.ReadRequest(cards.Pod{Containers: []cards.Container{{Name: "main", Limits: limits}}},
			[]cards.Resource{{Name: "volcano.sh/gpu-memory", Class: cards.Memory}})
	})
	if len(problems) > 0 {
		c.t.Fatal(problems)
	}
	return pod
}

func (c *change) see(pod *Pod) []string {
	if c.random.IntN(3) > 0 {
		c.shown[pod.Node][pod.UID] = pod
	}
	if c.random.IntN(3) > 0 {
		return c.book.SetPod(pod)
	}
	return nil
}

func (c *change) compare(name string) {
	var pods []*Pod
	for number := range 4 {
		if pod := c.shown[name][fmt.Sprint("u", number)]; pod != nil {
			pods = append(pods, pod)
		}
	}
	if c.book.nodes[name] == nil {
		return
	}
	anew, known := c.book.Node(name, pods), c.book.Known(name)
	c.same("by the scheduler's view", c.keptIn(c.shownTo, name, pods, anew), anew)
	c.same("without the scheduler's view", c.keptIn(c.known, name, nil, known), known)
}

// free returns what is free of each node without the scheduler's view.
func (c *change) free() map[string]int64 {
	found := map[string]int64{}
	for _, name := range []string{"n0", "n1"} {
		if node := c.book.Known(name); node != nil && node.ShareNode() != nil {
			found[name] = node.Cards(cards.Memory)[0].Free()
		}
	}
	return found
}

func (c *change) same(kept string, got, want *Node) {
	if !slices.Equal(got.Cards(cards.Memory), want.Cards(cards.Memory)) {
		c.t.Fatalf("what is kept %s is %v, and should be %v", kept, got.Cards(cards.Memory), want.Cards(cards.Memory))
	}
}

// keptIn returns what was kept of a node with the same version and pods; else it keeps now, where that lasts.
func (c *change) keptIn(kept map[string]keptSums, name string, pods []*Pod, now *Node) *Node {
	version := c.book.Version(name).Number()
	if last, has := kept[name]; has && last.version == version && slices.Equal(last.pods, pods) {
		return last.node
	}
	delete(kept, name)
	if now.Lasts() {
		kept[name] = keptSums{version, pods, now}
	}
	return now
}

func TestWhatIsKeptOfANodeIsWhatItWouldSayAnew(t *testing.T) {
	for seed := range uint64(1000) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			made := newChange(t, seed)
			for range 30 {
				made.take()
				made.compare("n0")
				made.compare("n1")
			}
		})
	}
}

func TestOthersHearOfAllThatBecomesFree(t *testing.T) {
	for seed := range uint64(1000) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			made := newChange(t, seed)
			for range 30 {
				before := made.free()
				told := made.take()
				for name, free := range made.free() {
					if free > before[name] && !slices.Contains(told, name) {
						t.Fatalf("%s has %d free, and had %d; told: %v", name, free, before[name], told)
					}
				}
			}
		})
	}
}
