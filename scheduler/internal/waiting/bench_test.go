package waiting

import (
	"fmt"
	"testing"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/sharenode"
)

// crowd has many pods wait for many nodes of 8 cards, whose units others have.
func crowd(b *testing.B, nodes, pods, kinds int) (*world, []string) {
	b.Helper()
	w, names := newWorld(), make([]string, nodes)
	for place := range names {
		names[place] = fmt.Sprint("node-", place)
		w.cards(names[place], 0)
	}
	all := append([]string{"gpu-1"}, names...)
	for place := range pods {
		one := pod(fmt.Sprint("pod-", place), fmt.Sprint(16-place%kinds), int32(place%3))
		_, attempt := w.begin(one)
		w.pods.Refused(one.UID, w.nodes.NodeSet(attempt, all), w.nodes)
	}
	return w, names
}

// cards has a node report 8 cards with some free units each.
func (w *world) cards(name string, free int64) {
	node := &sharenode.Node{Name: name, Resources: []cards.Resource{memory}, Preempts: true}
	for place := range 8 {
		card := sharenode.Card{UUID: fmt.Sprint("GPU-", place), Index: int64(place), Units: 16, Allocated: 16 - free, IsHealthy: true}
		node.Cards = append(node.Cards, card)
	}
	w.nodes.SetShareNode(node)
}

// BenchmarkCrowd is what the waker does where 5,000 pods wait for 5,000 nodes: of a change of one of them, of all, and of room
// for all.
func BenchmarkCrowd(b *testing.B) {
	for _, kinds := range []int{1, 16} {
		name := func(what string) string { return fmt.Sprintf("%s/kinds=%d", what, kinds) }
		b.Run(name("a_node_is_full"), func(b *testing.B) {
			w, names := crowd(b, 5000, 5000, kinds)
			for b.Loop() {
				w.pods.Changed(names[0], w.nodes)
				w.pods.Open()
				w.pods.Preemptors(w.nodes, w)
			}
		})
		b.Run(name("all_nodes_are_full"), func(b *testing.B) {
			w, names := crowd(b, 5000, 5000, kinds)
			for b.Loop() {
				for _, node := range names {
					w.pods.Changed(node, w.nodes)
				}
				w.pods.Open()
				w.pods.Preemptors(w.nodes, w)
			}
		})
		b.Run(name("all_nodes_have_room"), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				w, names := crowd(b, 5000, 5000, kinds)
				for _, node := range names {
					w.cards(node, 16)
				}
				b.StartTimer()
				woken := 0
				for _, node := range names {
					w.pods.Changed(node, w.nodes)
					woken += len(w.pods.Next(node, w.nodes, w))
				}
				if woken != 5000 {
					b.Fatalf("%d woken", woken)
				}
				for _, node := range w.pods.Open() {
					w.pods.Next(node, w.nodes, w)
				}
			}
		})
	}
}
