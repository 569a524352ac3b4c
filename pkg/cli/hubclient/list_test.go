package hubclient

import (
	"strings"
	"testing"
)

func TestListsAreReadWhateverTheirOrder(t *testing.T) {
	for name, list := range map[string]string{
		"as the API server writes them": `{"apiVersion":"v1","items":[{"metadata":{"namespace":"c1","name":"kafka","managedFields":[{"fieldsV1":{"f:x":{}}}]}},` +
			`{"metadata":{"namespace":"c2","name":"shop"}}],"kind":"List","metadata":{"continue":"more"}}`,
		"the other way round": `{"metadata":{"continue":"more"},"extra":[{"a":[1]}],"items":[{"metadata":{"name":"kafka","namespace":"c1"}},{"metadata":{"name":"shop","namespace":"c2"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			next, err := decodePage(strings.NewReader(list), func(s *summary) { seen = append(seen, s.addOn().Namespace+"/"+s.addOn().Name) })
			if err != nil || next != "more" || strings.Join(seen, " ") != "c1/kafka c2/shop" {
				t.Errorf("got %q, %q, %v", seen, next, err)
			}
			for cut := range len(list) {
				if _, err := decodePage(strings.NewReader(list[:cut]), func(*summary) {}); err == nil {
					t.Fatalf("nothing is wrong with %q", list[:cut])
				}
			}
		})
	}
	for _, list := range []string{`{"items":null}`, `{"items":[]}`, `{}`} {
		if next, err := decodePage(strings.NewReader(list), func(*summary) { t.Error("an item") }); next != "" || err != nil {
			t.Errorf("%s: got %q, %v", list, next, err)
		}
	}
}
