package ledger

import "gpushare.io/scheduler/internal/cards"

// CardUse is who has what of one card.
type CardUse struct {
	// Card is the card as the class sees it that uses it, else the first class that the node serves.
	cards.Card
	// Class is what the card serves alone; none where nothing of it is in use, and where two classes use it by mistake.
	Class cards.Class
	// UnitsOf are the units of each pod, by UID: what is booked, or what the kubelet has given out, whichever is more.
	UnitsOf map[string]int64
}

// CardUses returns who has what of each card of the GPUShareNode, by index; none where the node has no GPUShareNode.
func (n *Node) CardUses() []CardUse {
	if n.share == nil {
		return nil
	}
	found := make([]CardUse, len(n.share.Cards))
	for place := range found {
		class := n.uses[place].class
		seenAs := n.share.Resources[0].Class
		if n.share.IsMixed() && class != 0 {
			seenAs = class
		}
		found[place] = CardUse{n.cardAs(place, seenAs, n.uses[place]), class, n.unitsOn(place)}
	}
	return found
}

// unitsOn returns the units of a card that each pod has, each pod as a whole: what its init containers lend to the next
// ones counts once.
func (n *Node) unitsOn(place int) map[string]int64 {
	named, units := n.named(place), map[string]int64{}
	all := sumsOf(&n.share.Cards[named], n.tenants[named])
	for at := range n.tenants[named] {
		one := &n.tenants[named][at]
		units[one.uid] = max(one.booked, all.heldOf(one))
	}
	return units
}
