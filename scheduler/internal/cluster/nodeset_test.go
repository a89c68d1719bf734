package cluster

import (
	"fmt"
	"testing"

	"gpushare.io/scheduler/internal/sharenode"
)

func (w *world) has(set *NodeSet, name string) bool { return set.Has(w.Place(name)) }

func TestASetHasTheNodesThatRefused(t *testing.T) {
	w := newWorld()
	var refused []string
	for number := range 200 {
		name := fmt.Sprint("n", number)
		w.SetShareNode(&sharenode.Node{Name: name})
		if number%3 == 0 {
			refused = append(refused, name)
		}
	}
	set, named := w.NodeSet(w.Attempt(), append(refused, "nowhere")), NamedNodes(refused)
	for number := range 200 {
		name, want := fmt.Sprint("n", number), number%3 == 0
		if w.has(set, name) != want || w.has(named, name) != want {
			t.Errorf("%s is in it: %v, by name: %v", name, w.has(set, name), w.has(named, name))
		}
	}
	if w.has(set, "nowhere") {
		t.Error("a node of which nothing is known is in it")
	}
}

func TestASetHasNodesThatComeLater(t *testing.T) {
	w := newWorld()
	set, named := w.NodeSet(w.Attempt(), nil), NamedNodes([]string{"later"})
	if w.has(set, "gpu-1") || w.has(named, "gpu-1") {
		t.Error("gpu-1 did not refuse")
	}
	w.DropShareNode("gpu-1") // its number is free
	for _, name := range []string{"other", "later", "gpu-1"} {
		w.SetShareNode(&sharenode.Node{Name: name})
		if !w.has(set, name) {
			t.Errorf("%s is not in it", name)
		}
		if w.has(named, name) != (name == "later") {
			t.Errorf("by name, %s is in it: %v", name, w.has(named, name))
		}
	}
	again := w.NodeSet(w.Attempt(), nil)
	if w.has(again, "gpu-1") {
		t.Error("the next attempt saw it")
	}
	w.NodeReturned("gpu-1")
	if !w.has(again, "gpu-1") {
		t.Error("it was away")
	}
}

func TestNumbersOfNodesDoNotGrow(t *testing.T) {
	w := newWorld()
	for number := range 1000 {
		name := fmt.Sprint("n", number)
		w.SetShareNode(&sharenode.Node{Name: name})
		w.DropShareNode(name)
	}
	if w.numbers.next > 2 {
		t.Errorf("%d numbers", w.numbers.next)
	}
}
