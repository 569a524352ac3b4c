package bundle

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/signature"
)

// storedHub is a hub with an OperatorVersion that cannot be written.
type storedHub struct {
	client.Client
	version *kudo.OperatorVersion
}

func (h storedHub) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	h.version.DeepCopyInto(object.(*kudo.OperatorVersion))
	return nil
}

// TestSignIsLimited checks that signatures which are not verified do not fail a push because there are too many, or because they are too large.
func TestSignIsLimited(t *testing.T) {
	version := &kudo.OperatorVersion{}
	version.Name = "kafka-1.0.0"
	digest := signature.ContentDigest(version)
	payload, err := signature.Statement{Digest: digest, Versions: map[string]string{version.Name: digest}}.Payload()
	if err != nil {
		t.Fatal(err)
	}
	numbered := func(count, size int) (all []signature.Signature) {
		for i := range count {
			all = append(all, signature.Signature{Payload: payload, Signature: []byte{byte(i)}, Bundle: make([]byte, size)})
		}
		return all
	}
	for sentence, test := range map[string]struct {
		signatures Signatures
		reported   string
		want       string
	}{
		"too many":                          {Signatures{Found: numbered(11, 1)}, "not signed: 11 signatures are more than the limit of 10; ", ""},
		"too large":                         {Signatures{Found: numbered(10, 10<<10)}, "not signed: signatures of ", ""},
		"too many, although one is needed":  {Signatures{Found: numbered(11, 1), Required: true}, "", "11 signatures are more than the limit of 10: if none of those"},
		"too large, although one is needed": {Signatures{Found: numbered(10, 10<<10), Required: true}, "", "bytes are more than the limit of 131072 bytes: if none of those"},
	} {
		t.Run(sentence, func(t *testing.T) {
			reported := ""
			hub := &Hub{Client: storedHub{version: version}, Report: func(_, _, did string) error {
				reported = did
				return nil
			}}
			err := hub.sign(t.Context(), version, test.signatures)
			if !strings.HasPrefix(reported, test.reported) || (reported == "") != (test.reported == "") {
				t.Errorf("reported %q, want %q", reported, test.reported)
			}
			if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || !errors.As(err, new(*signature.LimitError))) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
