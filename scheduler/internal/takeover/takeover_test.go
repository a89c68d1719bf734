package takeover

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

const page = `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{"continue":"%s"},"items":[%s]}`

func item(uid, annotations string) string {
	return fmt.Sprintf(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata",`+
		`"metadata":{"name":"%s","uid":"%s","annotations":%s}}`, uid, uid, annotations)
}

func TestReadSeesEveryPage(t *testing.T) {
	serving := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if r.URL.Path != "/api/v1/pods" || query.Get("resourceVersion") != "" || query.Get("fieldSelector") != bound {
			t.Errorf("asked for %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		if query.Get("continue") == "" {
			fmt.Fprintf(w, page, "more", item("a", `{"gpushare.io/allocation":"x"}`)+","+item("plain", `{}`))
			return
		}
		fmt.Fprintf(w, page, "", item("b", `{"gpushare.io/allocation":"y"}`))
	}))
	defer serving.Close()
	reader, err := NewReader(&rest.Config{Host: serving.URL})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[types.UID]string{}
	err = reader.Read(context.Background(), func(uid types.UID, annotations map[string]string) {
		seen[uid] = annotations["gpushare.io/allocation"]
	})
	if err != nil || len(seen) != 2 || seen["a"] != "x" || seen["b"] != "y" {
		t.Errorf("saw %v, error %v", seen, err)
	}
}

func TestReadFailsWhereAPageFails(t *testing.T) {
	serving := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}))
	defer serving.Close()
	reader, err := NewReader(&rest.Config{Host: serving.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Read(context.Background(), func(types.UID, map[string]string) {}); err == nil {
		t.Error("no error")
	}
}
