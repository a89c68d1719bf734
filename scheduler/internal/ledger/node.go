package ledger

import (
	"slices"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/sharenode"
)

// Node is what is held of one node, and what follows from it. Only Add and TakeAway change it: they are for copies, made
// by Clone.
type Node struct {
	share   *sharenode.Node
	holders []*Holder
	// gone are the UIDs of pods that count as gone, their units as released by the kubelet.
	gone []string
	// changesElsewhere says whether the sums may change without a change of the node.
	changesElsewhere bool
	// tenants are those of each card of the GPUShareNode, in the order of its cards. Of two cards with the same UUID the
	// first has them.
	tenants [][]tenant
	// elsewhere are those of each card that the GPUShareNode does not name, by UUID.
	elsewhere map[string][]tenant
	// uses are those of the cards of the GPUShareNode, in their order.
	uses []use
	// classes are those as which any card is in use, also one that the GPUShareNode does not name.
	classes cards.ClassSet
	// seen are the cards as each class sees them that the node serves.
	seen [len(cards.Classes) + 1][]cards.Card
}

// use is what is in use of one card.
type use struct {
	isUsed bool
	// class is what the card serves alone; none where two classes use it by mistake: it serves nobody else then.
	class cards.Class
	// units are booked, or given out by the kubelet, whichever is more for each pod.
	units int64
}

// NewNode returns the sums of the node of share, which is nil where the node has none. No two of holders are of the
// same pod. It keeps holders, and changes none of them.
func NewNode(share *sharenode.Node, holders []*Holder) *Node {
	node := &Node{share: share, holders: holders}
	node.book()
	return node
}

// Clone returns a copy for a question such as: what if some pods were gone. What both have in common nobody changes.
func (n *Node) Clone() *Node {
	copied := *n
	return &copied
}

// Add counts a holder, in place of what the same pod had before.
func (n *Node) Add(holder *Holder) {
	holders := make([]*Holder, 0, len(n.holders)+1)
	for _, other := range n.holders {
		if other.UID != holder.UID {
			holders = append(holders, other)
		}
	}
	n.holders = append(holders, holder)
	n.gone = slices.DeleteFunc(slices.Clone(n.gone), func(uid string) bool { return uid == holder.UID })
	n.book()
}

// TakeAway answers for pods as if they were gone, and the kubelet had released their units: for pods that would be
// evicted.
func (n *Node) TakeAway(uids ...string) {
	n.gone = slices.Clip(n.gone)
	for _, uid := range uids {
		if !n.isGone(uid) {
			n.gone = append(n.gone, uid)
		}
	}
	n.count()
}

func (n *Node) isGone(uid string) bool { return slices.Contains(n.gone, uid) }

// book notes who has units of which card, and counts them.
func (n *Node) book() {
	n.tenants, n.elsewhere = nil, nil
	if n.share == nil {
		return
	}
	n.tenants = make([][]tenant, len(n.share.Cards))
	for _, holder := range n.holders {
		for _, own := range holder.Cards {
			n.bookCard(own.Card, tenant{
				uid: holder.UID, isBooked: true, booked: inNodeUnit(n.share, holder, own),
				class: holder.MeaningOf(own.Card).Class,
			})
		}
	}
	for place := range n.tenants {
		n.tenants[place] = withGiven(n.tenants[place], n.share.Cards[place].Holders)
	}
	n.count()
}

func (n *Node) bookCard(uuid string, one tenant) {
	if place := n.share.Card(uuid); place >= 0 {
		n.tenants[place] = append(n.tenants[place], one)
		return
	}
	if n.elsewhere == nil {
		n.elsewhere = map[string][]tenant{}
	}
	n.elsewhere[uuid] = append(n.elsewhere[uuid], one)
}

// count works out what is in use of every card.
func (n *Node) count() {
	if n.share == nil {
		return
	}
	n.uses, n.classes = make([]use, len(n.share.Cards)), 0
	for place := range n.share.Cards {
		sums := n.sumsOf(place)
		n.uses[place] = n.useBy(&sums)
		n.classes = n.classes.With(n.uses[place].class)
	}
	for _, tenants := range n.elsewhere {
		sums := n.without(sumsOf(nil, tenants), tenants)
		n.classes = n.classes.With(n.useBy(&sums).class)
	}
	for _, resource := range n.share.Resources {
		n.seen[resource.Class] = n.cardsAs(resource.Class)
	}
}

// sumsOf returns the sums of a card of the GPUShareNode, of those who are not gone.
func (n *Node) sumsOf(place int) sums {
	named := n.named(place)
	return n.without(sumsOf(&n.share.Cards[named], n.tenants[named]), n.tenants[named])
}

// named returns the place of a card that has what is held of the card at place: another one where two cards have the same UUID.
func (n *Node) named(place int) int { return n.share.Card(n.share.Cards[place].UUID) }

// without returns the sums of tenants without those that are gone.
func (n *Node) without(all sums, tenants []tenant) sums {
	if len(n.gone) == 0 {
		return all
	}
	all.isLater = true
	for place := range tenants {
		if n.isGone(tenants[place].uid) {
			all.leave(&tenants[place])
		}
	}
	return all
}

// useBy returns the use of a card.
func (n *Node) useBy(sums *sums) use {
	units := sums.unitsInUse()
	switch {
	case units == 0 && (sums.lock() == 0 || !n.share.IsMixed()):
		return use{}
	case n.share.IsMixed():
		return use{true, sums.class(), units}
	}
	return use{true, n.share.Resources[0].Class, units}
}

// amounts returns the units of a card, and those of them that are allocated, as a class sees it: a card that serves
// another class now is full.
func (n *Node) amounts(place int, class cards.Class, used use) (units, allocated int64) {
	units = n.share.Cards[place].UnitsOf(class)
	switch {
	case !used.isUsed:
		return units, 0
	case used.class == class:
		return units, used.units
	}
	return units, units
}

// cardsAs returns the cards with what is allocated of them now, as a class sees them.
func (n *Node) cardsAs(class cards.Class) []cards.Card {
	seen := make([]cards.Card, len(n.share.Cards))
	for place := range seen {
		seen[place] = n.cardAs(place, class, n.uses[place])
	}
	return seen
}

func (n *Node) cardAs(place int, class cards.Class, used use) cards.Card {
	card := &n.share.Cards[place]
	units, allocated := n.amounts(place, class, used)
	return cards.Card{
		UUID:      card.UUID,
		Index:     card.Index,
		Units:     units,
		Allocated: allocated,
		Open:      card.IsOpen(),
		NUMANode:  card.NUMANode,
		LinkGroup: card.LinkGroup,
		Lockable:  n.share.IsMixed() && !used.isUsed,
	}
}

// Cards returns the cards of the GPUShareNode, by index, with what is allocated of them now, as a class sees them that
// the node serves: one that serves another class is full. The caller changes nothing of them.
func (n *Node) Cards(class cards.Class) []cards.Card { return n.seen[class] }
