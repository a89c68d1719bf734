package sharenode

import (
	"fmt"
	"strings"
	"testing"
)

func TestCardsOfOneUUIDHaveThePlaceOfTheFirst(t *testing.T) {
	for _, number := range []int{3, manyCards} {
		cards := make([]string, number)
		for place := range cards {
			cards[place] = fmt.Sprintf(`{"uuid":"c%d","index":%d,"units":1}`, place/2, place)
		}
		node, err := Read(fmt.Appendf(nil, `{"metadata":{"name":"a"},"spec":{"mode":"Memory","memoryUnit":"1Gi"},
			"status":{"memoryUnit":"1Gi","cards":[%s]}}`, strings.Join(cards, ",")))
		if err != nil {
			t.Fatal(err)
		}
		if first, second, none := node.Card("c0"), node.Card("c1"), node.Card("c99"); first != 0 || second != 2 || none != -1 {
			t.Errorf("of %d: %d, %d, %d", number, first, second, none)
		}
	}
}

// A node of many cards is read and counted in less than a second: a pod's attempt waits for that.
func BenchmarkManyCards(b *testing.B) {
	cards := make([]string, 20_000)
	for place := range cards {
		cards[place] = fmt.Sprintf(`{"uuid":"GPU-%d","index":%d,"units":1}`, place, place)
	}
	raw := fmt.Appendf(nil, `{"metadata":{"name":"a"},"spec":{"mode":"Memory","memoryUnit":"1Gi"},
		"status":{"memoryUnit":"1Gi","cards":[%s]}}`, strings.Join(cards, ","))
	for b.Loop() {
		node, err := Read(raw)
		if err != nil {
			b.Fatal(err)
		}
		for place := range node.Cards {
			node.Card(node.Cards[place].UUID)
		}
	}
}
