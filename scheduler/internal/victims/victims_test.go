package victims

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/ledger"
	"gpushare.io/scheduler/internal/sharenode"
)

var memory = cards.Resource{Name: "gpushare.io/memory", Class: cards.Memory}

func nodeOf(number int, holders ...*ledger.Holder) *ledger.Node {
	share := &sharenode.Node{Name: "a", Resources: []cards.Resource{memory}, Preempts: true}
	for index := range number {
		share.Cards = append(share.Cards, sharenode.Card{
			UUID: fmt.Sprintf("GPU-%d", index), Index: int64(index), Units: 16, IsHealthy: true,
		})
	}
	return ledger.NewNode(share, holders)
}

func holds(uid, card string, units int64) *ledger.Holder {
	return &ledger.Holder{UID: uid, Node: "a", Cards: []cards.Share{{Card: card, Units: units}}}
}

func asks(units string) cards.Request {
	container := cards.Container{Name: "main", Limits: map[string]string{memory.Name: units}}
	return cards.ReadRequest(cards.Pod{Containers: []cards.Container{container}}, []cards.Resource{memory})
}

func pod(uid string, priority int32, started int64) Pod {
	return Pod{UID: uid, Priority: priority, Started: time.Unix(started, 0)}
}

func noBudgets([]Pod) map[string]bool { return nil }

func TestFind(t *testing.T) {
	two := nodeOf(2, holds("big", "GPU-0", 16), holds("x", "GPU-1", 8), holds("y", "GPU-1", 8))
	one := nodeOf(1, holds("old", "GPU-0", 8), holds("new", "GPU-0", 8))
	ending := pod("x", 0, 2)
	ending.IsEnding = true
	for _, test := range []struct {
		name      string
		node      *ledger.Node
		units     string
		pods      []Pod
		protected Protected
		want      []string
	}{
		{"one rather than two", two, "16", []Pod{pod("big", 0, 1), pod("x", 0, 2), pod("y", 0, 3)}, noBudgets,
			[]string{"big"}},
		{"two rather than a more important one", two, "16", []Pod{pod("big", 5, 1), pod("x", 0, 2), pod("y", 0, 3)},
			noBudgets, []string{"x", "y"}},
		{"the one that began last", one, "8", []Pod{pod("old", 0, 1), pod("new", 0, 2)}, noBudgets, []string{"new"}},
		{"the less important one", one, "8", []Pod{pod("old", 0, 1), pod("new", 1, 2)}, noBudgets, []string{"old"}},
		{"who may go is not enough", one, "16", []Pod{pod("old", 0, 1)}, noBudgets, nil},
		{"too large for every card", one, "17", []Pod{pod("old", 0, 1), pod("new", 0, 2)}, noBudgets, nil},
		{"another where a budget protects", two, "16", []Pod{pod("big", 0, 1), pod("x", 0, 2), pod("y", 0, 3)},
			func(pods []Pod) map[string]bool { return map[string]bool{pods[0].UID: pods[0].UID == "big"} },
			[]string{"x", "y"}},
		{"against a budget where nothing else helps", one, "16", []Pod{pod("old", 0, 1), pod("new", 0, 2)},
			func(pods []Pod) map[string]bool { return map[string]bool{pods[0].UID: true} }, []string{"new", "old"}},
		{"what is ending is enough", two, "8", []Pod{pod("big", 0, 1), ending, pod("y", 0, 3)}, noBudgets,
			[]string{"x"}},
		{"it fits as it is", nodeOf(1, holds("old", "GPU-0", 8)), "8", []Pod{pod("old", 0, 1)}, noBudgets, []string{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			protected := func(pods []Pod) map[string]bool {
				found := test.protected(pods)
				for uid, is := range found {
					if !is {
						delete(found, uid)
					}
				}
				return found
			}
			got, found := Find(test.node, asks(test.units), test.pods, protected)
			slices.Sort(got)
			if !slices.Equal(got, test.want) || found != (test.want != nil) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// protects says that a budget lets none of some pods go.
func protects(uids ...string) Protected {
	return func(pods []Pod) map[string]bool {
		kept := map[string]bool{}
		for _, one := range pods {
			if slices.Contains(uids, one.UID) {
				kept[one.UID] = true
			}
		}
		return kept
	}
}

func TestWhereAProtectedPodHasToGoTheOthersStay(t *testing.T) {
	node := nodeOf(2, holds("a", "GPU-0", 8), holds("b", "GPU-0", 8),
		holds("c", "GPU-1", 8), holds("d", "GPU-1", 4), holds("e", "GPU-1", 4))
	pods := []Pod{pod("a", 0, 5), pod("b", 0, 5), pod("c", 0, 1), pod("d", 3, 1), pod("e", 0, 1)}
	for _, test := range []struct{ protected, want []string }{
		{[]string{"a", "b", "c"}, []string{"c", "d", "e"}},
		{[]string{"a", "c", "d"}, []string{"a", "b"}},
		{[]string{"a", "b", "c", "d"}, []string{"a", "b"}},
	} {
		got, found := Find(node, asks("16"), pods, protects(test.protected...))
		slices.Sort(got)
		if !found || !slices.Equal(got, test.want) {
			t.Errorf("protected %v: got %v, want %v", test.protected, got, test.want)
		}
	}
}

func TestOnACardWhereAProtectedPodHasToGoTheOthersStay(t *testing.T) {
	node := nodeOf(1, holds("a", "GPU-0", 5), holds("b", "GPU-0", 5), holds("c", "GPU-0", 3), holds("d", "GPU-0", 3))
	pods := []Pod{pod("a", 0, 1), pod("b", 0, 2), pod("c", 0, 1), pod("d", 0, 1)}
	got, found := Find(node, asks("10"), pods, protects("a", "b"))
	slices.Sort(got)
	if !found || !slices.Equal(got, []string{"b", "c", "d"}) {
		t.Errorf("got %v", got)
	}
}

func TestOfProtectedPodsTheLeastImportantOneGoes(t *testing.T) {
	node := nodeOf(2, holds("strong", "GPU-0", 16), holds("weak", "GPU-1", 16))
	got, _ := Find(node, asks("16"), []Pod{pod("strong", 5, 2), pod("weak", 0, 1)}, protects("strong", "weak"))
	if !slices.Equal(got, []string{"weak"}) {
		t.Errorf("got %v", got)
	}
}

// As long as large may not go either, nothing is enough, and nobody asks about small.
func TestAProtectedPodStaysThatNobodyHasAskedAboutWhileNoBudgetWasOverruled(t *testing.T) {
	node := nodeOf(1, holds("large", "GPU-0", 8), holds("small", "GPU-0", 2), holds("a", "GPU-0", 4), holds("b", "GPU-0", 2))
	pods := []Pod{pod("large", 1, 1), pod("small", 0, 1), pod("a", 1, 1), pod("b", 0, 1)}
	got, _ := Find(node, asks("12"), pods, protects("large", "small"))
	slices.Sort(got)
	if !slices.Equal(got, []string{"a", "large"}) {
		t.Errorf("got %v", got)
	}
}

func TestSeveralCardsAreFreedOneAfterTheOther(t *testing.T) {
	slice := cards.Resource{Name: "gpushare.io/slice", Class: cards.Slice}
	share := &sharenode.Node{Name: "a", Resources: []cards.Resource{slice}, Preempts: true}
	var holders []*ledger.Holder
	var pods []Pod
	for index, priority := range []int32{3, 1, 2} {
		uuid, uid := fmt.Sprintf("GPU-%d", index), fmt.Sprintf("priority-%d", priority)
		share.Cards = append(share.Cards, sharenode.Card{UUID: uuid, Index: int64(index), Units: 1, IsHealthy: true})
		holders = append(holders, &ledger.Holder{UID: uid, Node: "a", Cards: []cards.Share{{Card: uuid, Units: 1}}})
		pods = append(pods, pod(uid, priority, 0))
	}
	container := cards.Container{Name: "main", Limits: map[string]string{slice.Name: "2"}}
	request := cards.ReadRequest(cards.Pod{Containers: []cards.Container{container}}, []cards.Resource{slice})
	got, found := Find(ledger.NewNode(share, holders), request, pods, noBudgets)
	slices.Sort(got)
	if !found || !slices.Equal(got, []string{"priority-1", "priority-2"}) {
		t.Errorf("got %v", got)
	}
}

func TestOnePodOfTwoCardsRatherThanTheNewestOfEach(t *testing.T) {
	slice := cards.Resource{Name: "gpushare.io/slice", Class: cards.Slice}
	share := &sharenode.Node{Name: "a", Resources: []cards.Resource{slice}, Preempts: true, Cards: []sharenode.Card{
		{UUID: "GPU-0", Units: 2, IsHealthy: true}, {UUID: "GPU-1", Index: 1, Units: 2, IsHealthy: true},
	}}
	both := holds("both", "GPU-0", 1)
	both.Cards = append(both.Cards, cards.Share{Card: "GPU-1", Units: 1})
	node := ledger.NewNode(share, []*ledger.Holder{both, holds("left", "GPU-0", 1), holds("right", "GPU-1", 1)})
	container := cards.Container{Name: "main", Limits: map[string]string{slice.Name: "2"}}
	request := cards.ReadRequest(cards.Pod{Containers: []cards.Container{container}}, []cards.Resource{slice})
	for priority, want := range map[int32][]string{0: {"both"}, 1: {"left", "right"}} {
		got, found := Find(node, request, []Pod{pod("both", priority, 1), pod("left", 0, 2), pod("right", 0, 2)}, noBudgets)
		slices.Sort(got)
		if !found || !slices.Equal(got, want) {
			t.Errorf("priority %d: got %v, want %v", priority, got, want)
		}
	}
}

// The request needs a slice of each card, and alone is the only one that can leave GPU-0.
func TestAProtectedPodOfTwoCardsStaysWhereOthersWillDo(t *testing.T) {
	slice := cards.Resource{Name: "gpushare.io/slice", Class: cards.Slice}
	share := &sharenode.Node{Name: "a", Resources: []cards.Resource{slice}, Preempts: true, Cards: []sharenode.Card{
		{UUID: "GPU-0", Units: 1, IsHealthy: true}, {UUID: "GPU-1", Index: 1, Units: 2, IsHealthy: true},
		{UUID: "GPU-2", Index: 2, Units: 2, IsHealthy: true},
	}}
	both := holds("both", "GPU-1", 1)
	both.Cards = append(both.Cards, cards.Share{Card: "GPU-2", Units: 1})
	node := ledger.NewNode(share, []*ledger.Holder{
		holds("alone", "GPU-0", 1), both, holds("left", "GPU-1", 1), holds("right", "GPU-2", 1),
	})
	container := cards.Container{Name: "main", Limits: map[string]string{slice.Name: "3"}}
	request := cards.ReadRequest(cards.Pod{Containers: []cards.Container{container}}, []cards.Resource{slice})
	pods := []Pod{pod("alone", 0, 1), pod("both", 0, 1), pod("left", 0, 2), pod("right", 0, 2)}
	got, found := Find(node, request, pods, protects("alone", "both"))
	slices.Sort(got)
	if !found || !slices.Equal(got, []string{"alone", "left", "right"}) {
		t.Errorf("got %v", got)
	}
}

func TestFindChangesNothing(t *testing.T) {
	node := nodeOf(1, holds("a", "GPU-0", 16))
	Find(node, asks("16"), []Pod{pod("a", 0, 1)}, noBudgets)
	if len(node.Gone()) > 0 || node.Cards(cards.Memory)[0].Free() != 0 {
		t.Error("the node has changed")
	}
}
