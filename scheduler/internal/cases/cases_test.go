package cases

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"
)

// table is written by python -m tests.engine.cases --write, from what core answers.
const table = "../../../tests/engine/cases.jsonl"

func TestTableOfCases(t *testing.T) {
	for _, asked := range readTable(t) {
		t.Run(asked.Name, func(t *testing.T) {
			got, err := asked.Solve()
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(plain(t, got), plain(t, asked.Answer)) {
				t.Errorf("asked %s\n got %s\nwant %s", asked.Given, got, asked.Answer)
			}
		})
	}
}

func readTable(t *testing.T) []Case {
	t.Helper()
	file, err := os.Open(table)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var found []Case
	for decoder := json.NewDecoder(bufio.NewReader(file)); decoder.More(); {
		var one Case
		if err := decoder.Decode(&one); err != nil {
			t.Fatal(err)
		}
		found = append(found, one)
	}
	if len(found) < 200 {
		t.Fatalf("%d cases in %s", len(found), table)
	}
	return found
}

// plain returns JSON without what its writer chose: the order of keys, blanks.
func plain(t *testing.T, raw []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestUnknownKindsAreRefused(t *testing.T) {
	if _, err := (Case{Kind: "weather"}).Solve(); err == nil {
		t.Error("answered")
	}
}
