package template

import (
	"fmt"
	"reflect"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"
)

// cost spends the cost of a call before the call, and rejects calls that are not allowed.
type cost func(b *budget, args []reflect.Value) error

// costs are the costs of functions that differ from processing their arguments once.
var costs = costList(map[string]cost{
	// These functions inspect an argument without processing it.
	"default empty coalesce all any ternary dict list tuple get unset hasKey pluck dig keys values":       freeCost,
	"first mustFirst last mustLast typeOf typeIs typeIsLike kindOf kindIs fail":                           freeCost,
	"append push mustAppend mustPush prepend mustPrepend concat":                                          topLevelCost,
	"rest mustRest initial mustInitial reverse mustReverse slice mustSlice compact mustCompact pick omit": topLevelCost,
	"set": setCost,

	// The length of the result is given by an argument, or is a product.
	"repeat":                            repeatCost,
	"indent nindent":                    indentCost,
	"replace":                           replaceCost,
	"wrapWith":                          wrapCost,
	"join":                              joinCost,
	"printf":                            printfCost,
	"split splitList splitn":            splitCost,
	"randAlphaNum randAlpha randAscii":  randomCost,
	"randNumeric randBytes":             randomCost,
	"fromJson mustFromJson":             perByteCost(4),
	"uniq mustUniq without mustWithout": uniqCost,

	// These functions are slow.
	"bcrypt htpasswd":           fixedCost(60_000),
	"derivePassword":            fixedCost(200_000),
	"genPrivateKey":             keyCost,
	"genCA genSelfSignedCert":   fixedCost(200_000),
	"genSignedCert":             fixedCost(200_000),
	"genCAWithKey":              fixedCost(10_000),
	"genSelfSignedCertWithKey":  fixedCost(10_000),
	"genSignedCertWithKey":      fixedCost(10_000),
	"buildCustomCert":           fixedCost(10_000),
	"date htmlDate":             fixedCost(50),
	"date_in_zone dateInZone":   fixedCost(50),
	"htmlDateInZone":            fixedCost(50),
	"semver semverCompare":      perByteCost(8),
	"addf add1f subf divf mulf": decimalCost,

	"regexMatch mustRegexMatch regexFind mustRegexFind": regexFindCost,
	"regexFindAll mustRegexFindAll":                     regexFindAllCost,
	"regexSplit mustRegexSplit":                         regexFindAllCost,
	"regexReplaceAll mustRegexReplaceAll":               regexReplaceCost,
	"regexReplaceAllLiteral mustRegexReplaceAllLiteral": regexReplaceCost,
})

// costList splits the names of a listing.
func costList(listing map[string]cost) map[string]cost {
	list := map[string]cost{}
	for names, c := range listing {
		for _, name := range strings.Fields(names) {
			list[name] = c
		}
	}
	return list
}

// charge spends the cost of calling a function: its own cost, or else processing its arguments once.
func (b *budget) charge(name string, args []reflect.Value) error {
	if err := b.spend(stepsPerCall); err != nil {
		return err
	}
	if cost, ok := costs[name]; ok {
		return cost(b, args)
	}
	return wholeCost(b, args)
}

// wholeCost is the cost of processing all arguments.
func wholeCost(b *budget, args []reflect.Value) error {
	for _, arg := range args {
		if err := b.weigh(arg); err != nil {
			return err
		}
	}
	return nil
}

func freeCost(b *budget, args []reflect.Value) error {
	last := args[len(args)-1]
	if last.Kind() == reflect.Slice { // the variadic arguments
		return b.spend(last.Len())
	}
	return nil
}

// topLevelCost is the cost of copying lists: the cost of their items without nested values.
func topLevelCost(b *budget, args []reflect.Value) error {
	for _, arg := range args {
		if err := b.spend(lengthOf(arg) / itemsPerStep); err != nil {
			return err
		}
		if arg.Kind() != reflect.Slice {
			continue
		}
		for i := range arg.Len() {
			if err := b.spend(lengthOf(arg.Index(i)) / itemsPerStep); err != nil {
				return err
			}
		}
	}
	return nil
}

// lengthOf returns the number of items of a list or a map, 0 for other values.
func lengthOf(v reflect.Value) int {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len()
	default:
		return 0
	}
}

// setCost rejects a map that is put into itself: processing such a map never ends.
func setCost(b *budget, args []reflect.Value) error { return b.weighInside(args[2], args[0]) }

// fixedCost is a cost in addition to the arguments.
func fixedCost(steps int) cost {
	return func(b *budget, args []reflect.Value) error {
		if err := b.spend(steps); err != nil {
			return err
		}
		return wholeCost(b, args)
	}
}

// perByteCost is a cost for each byte of the arguments' texts.
func perByteCost(steps int) cost {
	return func(b *budget, args []reflect.Value) error {
		for _, arg := range args {
			if err := b.spend(steps * arg.Len()); err != nil {
				return err
			}
		}
		return nil
	}
}

// repeatCost spends the cost of repeat COUNT TEXT.
func repeatCost(b *budget, args []reflect.Value) error {
	return b.product(0, args[0].Int(), args[1].Len())
}

// indentCost spends the cost of indent SPACES TEXT.
func indentCost(b *budget, args []reflect.Value) error {
	text := args[1].String()
	return b.product(len(text), args[0].Int(), 1+strings.Count(text, "\n"))
}

// replaceCost spends the cost of replace OLD NEW TEXT.
func replaceCost(b *budget, args []reflect.Value) error {
	text := args[2].String()
	if err := b.text(len(text)); err != nil {
		return err
	}
	return b.product(len(text), int64(strings.Count(text, args[0].String())), args[1].Len())
}

// wrapCost spends the cost of wrapWith LENGTH SEPARATOR TEXT.
func wrapCost(b *budget, args []reflect.Value) error {
	return b.product(args[2].Len(), int64(args[2].Len()), args[1].Len())
}

// joinCost spends the cost of join SEPARATOR LIST.
func joinCost(b *budget, args []reflect.Value) error {
	if err := b.weigh(args[1]); err != nil {
		return err
	}
	return b.product(0, int64(lengthOf(args[1])), args[0].Len())
}

// product spends the cost of a text that contains a piece count times besides the rest. The function itself rejects a negative count.
func (b *budget) product(rest int, count int64, piece int) error {
	if piece > 0 && count > int64(maxTextBytes/piece) {
		return errTooLong
	}
	return b.text(rest + max(0, int(count))*piece)
}

var (
	// directive is the beginning of a verb in a format: flags, index, width and precision.
	directive = regexp.MustCompile(`%[^a-zA-Z%]*`)
	width     = regexp.MustCompile(`[0-9]+|\*`)
)

// printfCost spends the cost of printf FORMAT ARGUMENTS. A number in a directive may be a width, and each verb may print all arguments.
func printfCost(b *budget, args []reflect.Value) error {
	const maxWidth = 1_000_000 // fmt's maximum
	if err := wholeCost(b, args); err != nil {
		return err
	}
	verbs := directive.FindAllString(args[0].String(), -1)
	bytes := 0
	for _, verb := range verbs {
		for _, text := range width.FindAllString(verb, -1) {
			number, err := strconv.Atoi(text)
			if err != nil || number > maxWidth {
				number = maxWidth
			}
			bytes += number
		}
		if err := wholeCost(b, args); err != nil {
			return err
		}
	}
	return b.text(bytes)
}

// splitCost spends the cost of split SEPARATOR TEXT, and splitn SEPARATOR COUNT TEXT.
func splitCost(b *budget, args []reflect.Value) error {
	text := args[len(args)-1].String()
	if err := b.text(len(text)); err != nil {
		return err
	}
	count := strings.Count(text, args[0].String())
	if err := b.spend(min(count, maxItems)); err != nil {
		return err
	}
	return b.items(count)
}

// randomCost spends the cost of randAlpha COUNT.
func randomCost(b *budget, args []reflect.Value) error {
	if count := args[0].Int(); count > maxRandomCharacters {
		return fmt.Errorf("%d random characters exceed the limit of %d", count, maxRandomCharacters)
	}
	return b.spend(8 * max(0, int(args[0].Int())))
}

// uniqCost spends the cost of uniq LIST, without LIST ITEMS. Each item is compared with every other one.
func uniqCost(b *budget, args []reflect.Value) error {
	before := b.steps
	if err := wholeCost(b, args); err != nil {
		return err
	}
	weight := before - b.steps
	return b.spend(weight * weight / 32)
}

// decimalCost spends the cost of calculating with decimals: the digits of the arguments add up.
func decimalCost(b *budget, args []reflect.Value) error {
	operands := args[len(args)-1]
	count := 1 + lengthOf(operands)
	if err := b.spend(count * count); err != nil {
		return err
	}
	return wholeCost(b, args)
}

// keyCost spends the cost of genPrivateKey TYPE. RSA keys of 4096 bits and DSA parameters take seconds.
func keyCost(b *budget, args []reflect.Value) error {
	switch args[0].String() {
	case "ecdsa", "ed25519":
		return b.spend(1_000)
	default:
		return b.spend(maxSteps * 6 / 10)
	}
}

// regexFindCost spends the cost of regexFind PATTERN TEXT.
func regexFindCost(b *budget, args []reflect.Value) error {
	text := args[1].String()
	_, program, err := b.compile(args[0].String())
	if err != nil || program == 0 {
		return err
	}
	return b.spend(1 + program*(1+len(text))/64)
}

// regexFindAllCost spends the cost of regexFindAll PATTERN TEXT COUNT.
func regexFindAllCost(b *budget, args []reflect.Value) error {
	count, err := b.matches(args[0].String(), args[1].String())
	if err != nil {
		return err
	}
	return b.items(count)
}

// regexReplaceCost spends the cost of regexReplaceAll PATTERN TEXT REPLACEMENT. All matches together are at most as long as the text, and
// so is the text that one reference to them adds.
func regexReplaceCost(b *budget, args []reflect.Value) error {
	text, replacement := args[1].String(), args[2].String()
	count, err := b.matches(args[0].String(), text)
	if err != nil {
		return err
	}
	return b.product((1+strings.Count(replacement, "$"))*len(text), int64(count), len(replacement))
}

// matches counts the matches of a pattern. Each may take as long as reading the whole text, so they are counted in rounds, and each round
// is paid in advance.
func (b *budget) matches(pattern, text string) (int, error) {
	expression, program, err := b.compile(pattern)
	if err != nil || program == 0 {
		return 0, err
	}
	for round := 16; ; round *= 2 {
		if err := b.spend(1 + program*(1+len(text))/256*round); err != nil {
			return 0, err
		}
		if found := expression.FindAllStringIndex(text, round); len(found) < round {
			return len(found), nil
		}
	}
}

// compile compiles a pattern and spends its cost. program is the number of its instructions; 0 for a pattern that does not compile, for
// which the function itself returns an error.
func (b *budget) compile(pattern string) (expression *regexp.Regexp, program int, err error) {
	if len(pattern) > maxPatternBytes {
		return nil, 0, fmt.Errorf("a regular expression of %d bytes exceeds the limit of %d", len(pattern), maxPatternBytes)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || !utf8.ValidString(pattern) {
		return nil, 0, nil
	}
	instructions, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, 0, nil
	}
	expression, err = regexp.Compile(pattern)
	if err != nil {
		return nil, 0, nil
	}
	return expression, len(instructions.Inst), b.spend(len(instructions.Inst))
}
