package ledger

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/sharenode"
)

const (
	packedNodes = 1000
	packedCards = 8
	packedUnits = 16
	packedShare = 70 // percent of all units
	packedTurns = 12000
)

// BenchmarkPacking is how well cards are packed when each pod takes the best of some nodes that fit, as kube-scheduler
// looks for them: from the node on at which it stopped before. The cluster is filled, then pods come and go. "lost" are
// cards in percent of those that would be free if every other was full, "nodes" those in use over the fewest possible.
func BenchmarkPacking(b *testing.B) {
	for _, among := range []int{20, 50, 100, 420, packedNodes} {
		b.Run(fmt.Sprintf("among-%d", among), func(b *testing.B) {
			for b.Loop() {
				p := newPacking(among)
				for p.used < packedNodes*packedCards*packedUnits*packedShare/100 {
					p.place(b)
				}
				for range packedTurns {
					p.remove()
					p.place(b)
				}
				lost, nodes := p.lost()
				b.ReportMetric(lost, "lost-%")
				b.ReportMetric(nodes, "nodes-%")
			}
		})
	}
}

// BenchmarkFastCards is which share of the fast cards pods break into, which belong on slow ones, until as many units are used
// as half of the slow cards have. The 300 nodes with fast cards are one behind the other, as those of one pool are.
func BenchmarkFastCards(b *testing.B) {
	const fast = 300
	for _, among := range []int{100, 420, packedNodes} {
		b.Run(fmt.Sprintf("among-%d", among), func(b *testing.B) {
			for b.Loop() {
				p := newPacking(among)
				for _, node := range p.nodes[:fast] {
					node.share.ComputeScore = 2
				}
				for p.used < (packedNodes-fast)*packedCards*packedUnits/2 {
					p.place(b)
				}
				broken := 0
				for _, node := range p.nodes[:fast] {
					for _, card := range node.Cards(cards.Memory) {
						broken += int(min(1, card.Allocated))
					}
				}
				b.ReportMetric(100*float64(broken)/(fast*packedCards), "broken-%")
			}
		})
	}
}

type packing struct {
	random *rand.Rand
	among  int
	nodes  []*Node
	pods   []*Holder
	places map[string]int
	start  int
	used   int64
	number int
}

func newPacking(among int) *packing {
	p := &packing{random: rand.New(rand.NewPCG(28, 2)), among: among, places: map[string]int{}}
	for place := range packedNodes {
		made := share(fmt.Sprintf("gpu-%d", place))
		made.Cards = nil
		for index := range packedCards {
			card := sharenode.Card{UUID: fmt.Sprintf("GPU-%d", index), Index: int64(index), Units: packedUnits, IsHealthy: true}
			made.Cards = append(made.Cards, card)
		}
		p.places[made.Name] = place
		p.nodes = append(p.nodes, NewNode(made, nil))
	}
	return p
}

// place binds a pod of random size to the best of the nodes that are looked at.
func (p *packing) place(b *testing.B) {
	sizes := [...]int64{1, 2, 2, 4, 4, 4, 6, 8, 8, 12, packedUnits}
	resource := cards.Resource{Name: "gpushare.io/memory", Class: cards.Memory}
	request := cards.Request{Parts: []cards.Part{{Resource: resource, Total: sizes[p.random.IntN(len(sizes))]}}}
	best, fits := cards.Ranked{}, 0
	for seen := 0; seen < packedNodes && fits < p.among; seen++ {
		p.start = (p.start + 1) % packedNodes
		one, refusal := p.nodes[p.start].Fit(request)
		if refusal != nil {
			continue
		}
		if fits == 0 || one.Key.Compare(best.Key) < 0 || one.Key == best.Key && one.Node < best.Node {
			best = one
		}
		fits++
	}
	if fits == 0 {
		b.Fatal("a pod fits no node")
	}
	p.number++
	node := p.nodes[p.places[best.Node]]
	holder, _ := node.Reserve(fmt.Sprint(p.number), request)
	node.Add(holder)
	p.pods, p.used = append(p.pods, holder), p.used+request.Parts[0].Total
}

// remove takes away a pod at random.
func (p *packing) remove() {
	place, last := p.random.IntN(len(p.pods)), len(p.pods)-1
	gone := p.pods[place]
	p.pods[place] = p.pods[last]
	p.pods = p.pods[:last]
	p.used -= gone.Cards[0].Units
	at := p.places[gone.Node]
	var left []*Holder
	for _, holder := range p.nodes[at].holders {
		if holder != gone {
			left = append(left, holder)
		}
	}
	p.nodes[at] = NewNode(p.nodes[at].share, left)
}

func (p *packing) lost() (cardsLost, nodesMore float64) {
	free, inUse := 0, 0
	for _, node := range p.nodes {
		if len(node.holders) > 0 {
			inUse++
		}
		for _, card := range node.Cards(cards.Memory) {
			if card.Allocated == 0 {
				free++
			}
		}
	}
	mostFree := float64(packedNodes*packedCards) - float64(p.used)/packedUnits
	fewest := float64(p.used) / (packedUnits * packedCards)
	return 100 * (1 - float64(free)/mostFree), 100 * (float64(inUse)/fewest - 1)
}
