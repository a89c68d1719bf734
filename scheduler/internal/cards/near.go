package cards

import "cmp"

// group is what cards have in common that a pod gets together; the last number is negative where it is unknown.
type group [2]int64

// kinship is one way in which cards are near each other.
type kinship struct {
	reason string
	groups func(Card) group
}

// kinships are the closest first.
var kinships = [...]kinship{
	{linked, func(card Card) group { return group{card.NUMANode, card.LinkGroup} }},
	{numaNode, func(card Card) group { return group{0, card.NUMANode} }},
}

// nearCards returns the free cards of which amount are taken: those that are linked, else those of one NUMA node,
// else all of them, without a reason. Of several groups it is the one with the fewest cards left over: large
// groups stay whole.
func nearCards(cards []Card, amount int64) ([]Card, string) {
	free := make([]Card, 0, len(cards))
	for _, card := range cards {
		if card.Fits(1) {
			free = append(free, card)
		}
	}
	for _, kinship := range kinships {
		if pool := smallest(free, kinship.groups, amount); len(pool) > 0 {
			return pool, kinship.reason
		}
	}
	return free, ""
}

// smallest returns the cards of the smallest known group that has at least amount, the lowest on ties.
func smallest(free []Card, groups func(Card) group, amount int64) []Card {
	sizes := map[group]int64{}
	for _, card := range free {
		sizes[groups(card)]++
	}
	var best group
	size := int64(0)
	for candidate, number := range sizes {
		if candidate[1] < 0 || number < amount {
			continue
		}
		if size == 0 || cmp.Or(cmp.Compare(number, size), compareGroups(candidate, best)) < 0 {
			best, size = candidate, number
		}
	}
	var pool []Card
	for _, card := range free {
		if size > 0 && groups(card) == best {
			pool = append(pool, card)
		}
	}
	return pool
}

func compareGroups(a, b group) int {
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
}
