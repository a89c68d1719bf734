package ledger

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/sharenode"
	"gpushare.io/scheduler/internal/unit"
)

// drawNode returns a node with pods that have units by annotation, by their kubelet, and by both. Some lend units.
func drawNode(draw *rand.Rand, classes []cards.Class) (*Node, []string) {
	share, uids := &sharenode.Node{Name: "n"}, []string(nil)
	for _, class := range classes {
		share.Resources = append(share.Resources, cards.Resource{Name: class.String(), Class: class})
		share.Units = append(share.Units, unit.Unit{Meaning: unit.OneOf(class)})
	}
	for place := range 1 + draw.IntN(3) {
		card := sharenode.Card{UUID: fmt.Sprint("card ", place), Units: 16, IsHealthy: true}
		if len(classes) > 1 {
			card.Lock = cards.Class(draw.IntN(len(cards.Classes) + 1))
		}
		share.Cards = append(share.Cards, card)
	}
	var holders []*Holder
	for number := range draw.IntN(8) {
		uid, card := fmt.Sprint("pod ", number), &share.Cards[draw.IntN(len(share.Cards))]
		uids = append(uids, uid)
		units, least := draw.Int64N(9), draw.Int64N(9)
		if draw.IntN(4) > 0 {
			holders = append(holders, &Holder{UID: uid, Node: "n", Cards: []cards.Share{{Card: card.UUID, Units: units}},
				Meaning: share.Units[draw.IntN(len(share.Units))].Meaning})
		}
		if draw.IntN(4) > 0 {
			card.Holders = append(card.Holders, sharenode.Holder{UID: uid, Units: least + draw.Int64N(3), Least: least})
			card.Allocated += least
		}
	}
	return NewNode(share, holders), uids
}

func TestACardSaysWhatItsNodeSaysOnceThosePodsAreGone(t *testing.T) {
	room := 0
	for seed := range uint64(3000) {
		draw := rand.New(rand.NewPCG(seed, 0))
		classes := cards.Classes[seed%3 : seed%3+1]
		if seed%4 == 0 {
			classes = cards.Classes[:]
		}
		node, uids := drawNode(draw, classes)
		card, after := node.Card("card 0"), node.Clone()
		for _, uid := range uids {
			if draw.IntN(2) > 0 {
				card.TakeAway(uid)
				after.TakeAway(uid)
			}
		}
		for _, class := range classes {
			want := after.Cards(class)[0]
			for units := range int64(18) {
				if card.Fits(class, units) != want.Fits(units) {
					t.Fatalf("seed %d: %d units of a %s: %t, and of the node %d are free", seed, units, class, !want.Fits(units), want.Free())
				}
			}
			room += int(want.Free())
		}
	}
	if room == 0 {
		t.Error("no card had any room")
	}
}
