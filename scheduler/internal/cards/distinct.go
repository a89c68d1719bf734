package cards

import (
	"fmt"
	"slices"
)

// distinctMode gives one unit on each of several distinct cards: an amount is a number of cards, also over all
// containers of a pod.
type distinctMode struct {
	// things is what amounts are of, for people; free is one thing that is needed, and freeOnes are several.
	things, free, freeOnes string
	// pool narrows the cards down to those of which the amount is taken, and says why these; no reason where it
	// is all of them.
	pool func(cards []Card, amount int64) ([]Card, string)
}

var (
	slicesMode = distinctMode{"GPU slices", "a card with a free slice", "%d cards with a free slice", everyCard}
	wholeMode  = distinctMode{"GPU cards", "a free card", "%d free cards", nearCards}
)

func everyCard(cards []Card, _ int64) ([]Card, string) { return cards, "" }

func (m distinctMode) Choose(cards []Card, amount int64, strategy Strategy) []Share {
	pool, _ := m.pool(cards, amount)
	return pick(pool, amount, 1, strategy)
}

func (m distinctMode) Reason(cards []Card, chosen []Share, strategy Strategy) string {
	pool, reason := m.pool(cards, int64(len(chosen)))
	if reason != "" && len(pool) < len(fittingCards(cards, 1)) {
		return reason
	}
	return choiceReason(pool, chosen[0].Units, chosen, strategy)
}

func (distinctMode) Greatest(units []int64) int64 {
	number := int64(0)
	for _, free := range units {
		number += bit(free > 0)
	}
	return number
}

// Explain names the number of cards where even empty ones would not suffice.
func (m distinctMode) Explain(amount int64, room Room) string {
	needed := m.free
	if amount != 1 {
		needed = fmt.Sprintf(m.freeOnes, amount)
	}
	inAll := ""
	if amount > room.Possible {
		inAll = fmt.Sprintf(", of %d in all", room.Possible)
	}
	return fmt.Sprintf("insufficient %s: needs %s, has %d%s%s", m.things, needed, room.Greatest, inAll, room.remark())
}

// Containers has ordinary init containers lend their cards to those after them, as in the kubelet.
func (distinctMode) Containers(part Part, lending []string, cards []string) []ContainerShares {
	given := make([]ContainerShares, len(part.Containers))
	staying, all := int64(0), int64(len(cards))
	for place, amount := range part.Containers {
		own := cards[min(staying, all):min(staying+amount.Units, all)]
		given[place] = ContainerShares{amount.Container, oneOfEach(own)}
		if !slices.Contains(lending, amount.Container) {
			staying += amount.Units
		}
	}
	return given
}

func oneOfEach(cards []string) []Share {
	shares := []Share{}
	for _, card := range cards {
		shares = Put(shares, card, 1)
	}
	return shares
}
