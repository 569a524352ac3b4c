package packages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	corecontent "github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/kube/content"
	"github.com/tandem-addons/tandem/pkg/text"
)

// checkServesContent returns an error if one of the packages needs OperatorContents and the hub does not have them: its OperatorVersion would be stored
// without the list of its content.
func checkServesContent(c client.Client, members []*member) error {
	for _, m := range members {
		_, version := m.objects("")
		if stored, _ := pack.Divide(version); len(stored.Spec.Content) == 0 {
			continue
		}
		_, err := c.RESTMapper().RESTMapping(kudo.GroupVersion.WithKind("OperatorContent").GroupKind(), kudo.GroupVersion.Version)
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
func storeContent(
	ctx context.Context, c client.Client, out io.Writer, version *kudo.OperatorVersion, charts map[string][]byte, existed bool,
) error {
	if divided, _ := pack.Divide(version); len(divided.Spec.Content) == 0 && !existed {
		return nil
	}
	stored := &kudo.OperatorVersion{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(version), stored); err != nil {
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
			did, err := storePart(ctx, c, stored, file, i, parts[i])
			if err == nil {
				err = report(out, "operatorcontent", corecontent.Name(stored.Name, file.Parts[i]), did)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// storePart stores a part of a file, and returns what it did.
func storePart(
	ctx context.Context, c client.Client, version *kudo.OperatorVersion, file kudo.ContentFile, part int, data []byte,
) (did string, err error) {
	_, err = content.Part(ctx, c, client.ObjectKeyFromObject(version), file, part)
	var problem *corecontent.Error
	switch {
	case err == nil:
		return own(ctx, c, version, file.Parts[part])
	case !errors.As(err, &problem):
		return "", err
	}
	made, did := corecontent.New(version, data), "created"
	if made.Digest != file.Parts[part] {
		return "", fmt.Errorf("file %q of OperatorVersion %q has other parts on the hub: raise operatorVersion", file.File, version.Name)
	}
	if problem.Found != "" || problem.Cause != nil { // it is immutable
		if err := c.Delete(ctx, made); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("deleting altered OperatorContent %q: %w", made.Name, err)
		}
		did = "replaced"
	}
	if err := c.Create(ctx, made, client.FieldOwner(hubclient.FieldManager)); err != nil {
		return "", fmt.Errorf("creating OperatorContent %q: %w", made.Name, err)
	}
	return did, nil
}

// store adds the signatures about an OperatorVersion to those that it has on the hub, and drops those that are about other content.
func (s signatures) store(ctx context.Context, c client.Client, out io.Writer, version *kudo.OperatorVersion) error {
	if !signature.IsNamed(s.found, version.Name) {
		return nil
	}
	stored := &kudo.OperatorVersion{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(version), stored); err != nil {
		return fmt.Errorf("reading OperatorVersion %q: %w", version.Name, err)
	}
	about := signature.About(s.found, stored)
	switch {
	case len(about) == 0 && s.required:
		return fmt.Errorf("OperatorVersion %q is not signed: the signature is about other content than the hub stores: raise operatorVersion", version.Name)
	case len(about) == 0:
		return report(out, "operatorversion", version.Name, "not signed: its signatures are about other content")
	}
	err := addSignatures(ctx, c, out, stored, about)
	if limit := (*signature.LimitError)(nil); errors.As(err, &limit) && !s.required {
		return report(out, "operatorversion", version.Name, "not signed: "+limit.Error()+"; --key FILE stores only those by its keys")
	}
	return err
}

// addSignatures adds signatures to those that an OperatorVersion has on the hub.
func addSignatures(ctx context.Context, c client.Client, out io.Writer, stored *kudo.OperatorVersion, about []signature.Signature) error {
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
	err = c.Patch(ctx, signed, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}), client.FieldOwner(hubclient.FieldManager))
	if err != nil {
		return fmt.Errorf("adding the signatures of OperatorVersion %q: %w", stored.Name, err)
	}
	return report(out, "operatorversion", stored.Name, "signed")
}

// own makes an OperatorVersion the owner of an OperatorContent of an earlier one of that name, with which it would be collected.
func own(ctx context.Context, c client.Client, version *kudo.OperatorVersion, digest string) (did string, err error) {
	part := content.Metadata()
	key := client.ObjectKey{Namespace: version.Namespace, Name: corecontent.Name(version.Name, digest)}
	if err := c.Get(ctx, key, part); err != nil {
		return "", fmt.Errorf("reading OperatorContent %q: %w", key.Name, err)
	}
	if slices.ContainsFunc(part.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == version.UID }) {
		return "unchanged", nil
	}
	owned := part.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{corecontent.OwnerOf(version)}
	err = c.Patch(ctx, owned, client.MergeFromWithOptions(part, client.MergeFromWithOptimisticLock{}), client.FieldOwner(hubclient.FieldManager))
	if err != nil {
		return "", fmt.Errorf("taking over OperatorContent %q: %w", key.Name, err)
	}
	return "configured", nil
}

// report prints the result as kubectl does.
func report(out io.Writer, kind, name, did string) error {
	_, err := fmt.Fprintf(out, "%s %s\n", text.ObjectName(kudo.GroupVersion.Group, kind, name), did)
	return err
}
