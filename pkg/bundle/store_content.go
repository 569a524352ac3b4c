package bundle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	corecontent "github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/kube/content"
)

// checkServesContent returns an error if one of the packages needs OperatorContents and the hub does not have them: its OperatorVersion would be stored
// without the list of its content.
func (h *Hub) checkServesContent(members []*Member) error {
	for _, m := range members {
		_, version := m.Objects("")
		if stored, _ := pack.Divide(version); len(stored.Spec.Content) == 0 {
			continue
		}
		_, err := h.Client.RESTMapper().RESTMapping(kudo.GroupVersion.WithKind("OperatorContent").GroupKind(), kudo.GroupVersion.Version)
		if meta.IsNoMatchError(err) {
			return fmt.Errorf("OperatorVersion %q has charts, or more than %d bytes, and the hub has no CustomResourceDefinition for OperatorContents: "+
				"upgrade Tandem on the hub first", version.Name, pack.MaxSize)
		}
		if err != nil {
			return fmt.Errorf("determining the kinds of the hub: %w", err)
		}
	}
	return nil
}

// storeContent stores the content of an OperatorVersion on the hub: what is missing, and what was altered. version has all templates, and charts are the
// archives of its charts. The OperatorVersion on the hub lists the content: if it existed, another release may have stored it.
func (h *Hub) storeContent(ctx context.Context, version *kudo.OperatorVersion, charts map[string][]byte, existed bool) error {
	if divided, _ := pack.Divide(version); len(divided.Spec.Content) == 0 && !existed {
		return nil
	}
	stored := &kudo.OperatorVersion{}
	if err := h.Client.Get(ctx, client.ObjectKeyFromObject(version), stored); err != nil {
		return fmt.Errorf("reading OperatorVersion %q: %w", version.Name, err)
	}
	for _, file := range stored.Spec.Content {
		data, isChart := charts[file.File]
		if !isChart {
			data = []byte(version.Spec.Templates[file.File])
		}
		parts := corecontent.Split(data)
		if len(parts) != len(file.Parts) {
			return fmt.Errorf("file %q of OperatorVersion %q has %d parts on the hub instead of %d: raise operatorVersion", file.File, version.Name,
				len(file.Parts), len(parts))
		}
		for i := range parts {
			did, err := h.storePart(ctx, stored, file, i, parts[i])
			if err == nil {
				err = h.Report("operatorcontent", corecontent.Name(stored.Name, file.Parts[i]), did)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// storePart stores a part of a file, and returns what it did.
func (h *Hub) storePart(
	ctx context.Context, version *kudo.OperatorVersion, file kudo.ContentFile, part int, data []byte,
) (did string, err error) {
	_, err = content.Part(ctx, h.Client, client.ObjectKeyFromObject(version), file, part)
	var problem *corecontent.Error
	switch {
	case err == nil:
		return h.own(ctx, version, file.Parts[part])
	case !errors.As(err, &problem):
		return "", err
	}
	made, did := corecontent.New(version, data), "created"
	if made.Digest != file.Parts[part] {
		return "", fmt.Errorf("file %q of OperatorVersion %q has other parts on the hub: raise operatorVersion", file.File, version.Name)
	}
	if problem.Found != "" || problem.Cause != nil { // it is immutable
		if err := h.Client.Delete(ctx, made); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("deleting altered OperatorContent %q: %w", made.Name, err)
		}
		did = "replaced"
	}
	if err := h.Client.Create(ctx, made, client.FieldOwner(h.FieldManager)); err != nil {
		return "", fmt.Errorf("creating OperatorContent %q: %w", made.Name, err)
	}
	return did, nil
}

// Signatures are those of packages that are stored on a hub.
type Signatures struct {
	Found []signature.Signature
	// Required is set if each OperatorVersion must get one.
	Required bool
}

// sign adds the signatures about an OperatorVersion to those that it has on the hub, and drops those that are about other content.
func (h *Hub) sign(ctx context.Context, version *kudo.OperatorVersion, s Signatures) error {
	if !signature.IsNamed(s.Found, version.Name) {
		return nil
	}
	stored := &kudo.OperatorVersion{}
	if err := h.Client.Get(ctx, client.ObjectKeyFromObject(version), stored); err != nil {
		return fmt.Errorf("reading OperatorVersion %q: %w", version.Name, err)
	}
	about := signature.About(s.Found, stored)
	switch {
	case len(about) == 0 && s.Required:
		return fmt.Errorf("OperatorVersion %q is not signed: the signature is about other content than the hub stores: raise operatorVersion", version.Name)
	case len(about) == 0:
		return h.Report("operatorversion", version.Name, "not signed: its signatures are about other content")
	}
	err := h.addSignatures(ctx, stored, about)
	if limit := (*signature.LimitError)(nil); errors.As(err, &limit) && !s.Required {
		return h.Report("operatorversion", version.Name, "not signed: "+limit.Error()+"; --key or --certificate-identity stores only those that it trusts")
	}
	return err
}

// addSignatures adds signatures to those that an OperatorVersion has on the hub.
func (h *Hub) addSignatures(ctx context.Context, stored *kudo.OperatorVersion, about []signature.Signature) error {
	before := stored.Annotations[kudo.AnnotationSignatures]
	existing, err := signature.Parse(before)
	if err != nil { // what another writer left there proves nothing
		existing = nil
	}
	all, err := signature.Add(signature.About(existing, stored), about...)
	value := ""
	if err == nil {
		value, err = signature.Encode(all)
	}
	if err != nil {
		return fmt.Errorf("OperatorVersion %q: %w: if none of those that it has is needed, remove them with 'kubectl annotate operatorversions.kudo.dev -n %s %s %s-'",
			stored.Name, err, stored.Namespace, stored.Name, kudo.AnnotationSignatures)
	}
	if value == before {
		return nil
	}
	signed := stored.DeepCopy()
	if signed.Annotations == nil {
		signed.Annotations = map[string]string{}
	}
	signed.Annotations[kudo.AnnotationSignatures] = value
	err = h.Client.Patch(ctx, signed, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}), client.FieldOwner(h.FieldManager))
	if err != nil {
		return fmt.Errorf("adding the signatures of OperatorVersion %q: %w", stored.Name, err)
	}
	return h.Report("operatorversion", stored.Name, "signed")
}

// own makes an OperatorVersion the owner of an OperatorContent of an earlier one of that name, with which it would be collected.
func (h *Hub) own(ctx context.Context, version *kudo.OperatorVersion, digest string) (did string, err error) {
	part := content.Metadata()
	key := client.ObjectKey{Namespace: version.Namespace, Name: corecontent.Name(version.Name, digest)}
	if err := h.Client.Get(ctx, key, part); err != nil {
		return "", fmt.Errorf("reading OperatorContent %q: %w", key.Name, err)
	}
	if slices.ContainsFunc(part.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == version.UID }) {
		return "unchanged", nil
	}
	owned := part.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{corecontent.OwnerOf(version)}
	err = h.Client.Patch(ctx, owned, client.MergeFromWithOptions(part, client.MergeFromWithOptimisticLock{}), client.FieldOwner(h.FieldManager))
	if err != nil {
		return "", fmt.Errorf("taking over OperatorContent %q: %w", key.Name, err)
	}
	return "configured", nil
}
