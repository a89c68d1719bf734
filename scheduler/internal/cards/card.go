package cards

import (
	"cmp"
	"slices"
)

// Strategy is how units are laid out over cards. The zero value is Binpack.
type Strategy uint8

// Binpack takes the tightest card that fits, Spread the emptiest.
const (
	Binpack Strategy = iota
	Spread
)

// StrategyNamed returns the strategy that the API writes as name, Binpack where it is none.
func StrategyNamed(name string) Strategy {
	if name == "Spread" {
		return Spread
	}
	return Binpack
}

// Card is one card, with what is allocated of it as one class sees it. Amounts are units.
type Card struct {
	UUID             string
	Index            int64
	Units, Allocated int64
	// Open says whether it may get new pods: not when it is sick or cordoned.
	Open bool
	// NUMANode is negative where it is unknown.
	NUMANode int64
	// LinkGroup is a number that cards of a NUMA node share which are linked directly; negative where unknown.
	LinkGroup int64
	// Lockable says whether its first use takes it from other classes: cards in use already come first.
	Lockable bool
}

// Free returns the units that nobody has; negative where more are allocated than there are.
func (c *Card) Free() int64 { return c.Units - c.Allocated }

// Fits says whether the card has units left to give.
func (c *Card) Fits(units int64) bool { return c.Open && 0 < units && units <= c.Free() }

// isUnused says whether nobody uses the card, and somebody could.
func (c *Card) isUnused() bool { return c.Open && c.Allocated == 0 && c.Units > 0 }

// Share is what is had of one card, in units.
type Share struct {
	Card  string
	Units int64
}

// Put returns shares in which a card has units, in the place that it had before, else as the last one.
func Put(shares []Share, card string, units int64) []Share {
	for place := range shares {
		if shares[place].Card == card {
			shares[place].Units = units
			return shares
		}
	}
	return append(shares, Share{card, units})
}

// unitsOn returns what shares has of a card; false where it has nothing.
func unitsOn(shares []Share, card string) (int64, bool) {
	for _, share := range shares {
		if share.Card == card {
			return share.Units, true
		}
	}
	return 0, false
}

// compare says which of two cards a request gets sooner: negative for a.
func (s Strategy) compare(a, b *Card) int {
	if a.Lockable != b.Lockable {
		if a.Lockable {
			return 1
		}
		return -1
	}
	sign := int64(1)
	if s == Spread {
		sign = -1
	}
	return cmp.Or(cmp.Compare(sign*a.Free(), sign*b.Free()), cmp.Compare(a.Index, b.Index))
}

// pick returns the number of distinct cards, with units on each; none where fewer fit. Lowest index on ties.
func pick(cards []Card, number, units int64, strategy Strategy) []Share {
	fitting := fittingCards(cards, units)
	if int64(len(fitting)) < number {
		return nil
	}
	if number == 1 { // nearly every request, on each of thousands of nodes
		return []Share{{slices.MinFunc(fitting, strategy.compare).UUID, units}}
	}
	slices.SortStableFunc(fitting, strategy.compare)
	var chosen []Share
	for _, card := range fitting[:number] {
		chosen = Put(chosen, card.UUID, units)
	}
	return chosen
}

func fittingCards(cards []Card, units int64) []*Card {
	fitting := make([]*Card, 0, len(cards))
	for place := range cards {
		if cards[place].Fits(units) {
			fitting = append(fitting, &cards[place])
		}
	}
	return fitting
}
