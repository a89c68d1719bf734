package ledger

import (
	"slices"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/unit"
)

// Reserve returns what a pod with request gets of the node, and why these cards; nil where it does not fit. It
// changes nothing: Add counts the holder.
func (n *Node) Reserve(uid string, request cards.Request) (*Holder, []Choice) {
	choices := n.Choose(request)
	if len(choices) == 0 {
		return nil, nil
	}
	holder := &Holder{UID: uid, Node: n.share.Name}
	for place, choice := range choices {
		meaning := n.share.UnitOf(choice.Part.Class).Meaning
		if place == 0 {
			holder.Meaning = meaning
		}
		for _, share := range choice.Shares {
			holder.Cards = append(holder.Cards, share)
			if meaning != holder.Meaning && meaning != (unit.Meaning{}) {
				holder.Others = append(holder.Others, CardMeaning{share.Card, meaning})
			}
		}
	}
	return holder, choices
}

// Among returns a copy that has only the cards of some shares to give.
func (n *Node) Among(shares []cards.Share) *Node {
	few := n.Clone()
	for class, all := range n.seen {
		few.seen[class] = slices.DeleteFunc(slices.Clone(all), func(card cards.Card) bool {
			return !slices.ContainsFunc(shares, func(share cards.Share) bool { return share.Card == card.UUID })
		})
	}
	return few
}
