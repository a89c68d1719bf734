package proportion

import (
	"slices"
	"testing"
)

func numbers(number int) (found []int) {
	for place := range number {
		found = append(found, place)
	}
	return found
}

func TestWorkInProportionPasses(t *testing.T) {
	err := Check(1_000_000, func(number int) func() {
		return func() {
			known := map[int]bool{}
			for _, one := range numbers(number) {
				known[one] = true
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWorkThatGrowsWithTheSquareIsAnError(t *testing.T) {
	err := Check(45_000, func(number int) func() {
		return func() {
			var known []int
			for _, one := range numbers(number) {
				if !slices.Contains(known, one) {
					known = append(known, one)
				}
			}
		}
	})
	if err == nil {
		t.Error("no error")
	}
}
