package rules

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSecretsHide(t *testing.T) {
	var defaults Secrets
	own := NewSecrets([]string{"PIN", "2fa", "card_number", "пароль", "Ключ"}, []string{"Session", "api-key"})
	long := NewSecrets([]string{strings.Repeat("a", 70) + "b"}, nil)
	for _, test := range []struct {
		secrets *Secrets
		name    string
		want    bool
	}{
		{&defaults, "Authorization", true},
		{&defaults, "ACCESS-TOKEN", true},
		{&defaults, "accessToken", true},
		{&defaults, "_token_", true},
		{&defaults, "to--ken", true},
		{&defaults, "user[password]", true},
		{&defaults, "user.password", true},
		{&defaults, "a[b][api_key]", true},
		{&defaults, "password[0]", true},
		{&defaults, "[token", true},
		{&defaults, "token.x", true},
		{&defaults, strings.Repeat("x", 1000) + ".token", true},
		{&defaults, strings.Repeat("_", 1000) + "token", true},
		{&defaults, "", false},
		{&defaults, "_", false},
		{&defaults, "..", false},
		{&defaults, "tokens", false},
		{&defaults, "q", false},
		{&defaults, "passwordhint", false},
		{&defaults, "token" + strings.Repeat("x", 1000), false},
		{&defaults, "user[name]", false},
		{&own, "pin", true},
		{&own, "P-I-N", true},
		{&own, "2FA", true},
		{&own, "cardNumber", true},
		{&own, "пароль", true},
		{&long, strings.Repeat("a", 70) + "b", true},
		{&long, strings.Repeat("a", 63), false},
		{&own, "Ключ", true},
		{&own, "token", true},
		{&own, "session", false},
		{&own, "apikey", false},
		{&own, "q", false},
	} {
		if got := test.secrets.Hides(test.name); got != test.want {
			t.Errorf("%q is hidden: %v", test.name, got)
		}
	}
}

// hiddenNames are names that were published when only whole names were compared, and names that
// users choose for secrets.
var hiddenNames = strings.Split("client_secret,refresh_token,id_token,new_password,password_confirmation,userPassword,sessionid,PHPSESSID,"+
	"pwd,jwt,auth,code,otp,sig,X-Amz-Signature,private_key,credit_card, password,user:password,user{password},"+
	"PWD,_jwt_,{auth},user[code],user.otp,sig:,%70wd[pwd],"+
	"password1,password2,password_2,passwords[],PASSWORD_CONFIRMATION,passwordConfirmation,passwordHash,PASSWORDHash,userpassword,"+
	"user password,user/password,user|password,pass-word,db.password,old_passwd,passphrase,ssh-passphrase,passcode,"+
	"clientSecret,client-secret,secret_key,secretKey,SecretAccessKey,AWSSecretAccessKey,secrets,credentials,X-Amz-Credential,"+
	"X-Api-Key,api key,apiKey,APIKey,apikey,api_keys,my_api_key_id,privateKey,PRIVATE-KEY,access_key,creditCard,credit_card_number,creditcard,"+
	"accessToken,access-token,ACCESS_TOKEN,csrf_token,csrfmiddlewaretoken,X-Amz-Security-Token,mytoken,token1,token_2,id_token_hint,"+
	"session,session_id,sessionId,JSESSIONID,ASP.NET_SessionId,usersession,session_key,sessid,"+
	"signature,X-Signature,oauth_signature,Authorization,Proxy-Authorization,пароль_password,été_token", ",")

// ordinaryNames contain the letters of secret names but are not secret.
var ordinaryNames = strings.Split("q,page,sort,lang,id,key,keys,keyword,keyboard,monkey,turkey,hotkey,compass,pass,passenger,passage,passwordhint,word,"+
	"author,authors,authority,authored_by,author_id,oauth,auth_type,zipcode,zip_code,discount_code,discountCode,promo_code,country_code,codes,coder,decode,encode,barcode,code_style,qrcode,unicode,"+
	"design,designer,sign,signed,assign,sigma,sig_digits,signature_version,SignatureMethod,X-Amz-SignedHeaders,"+
	"token_count,token_type,tokenType,tokens,max_tokens,tokenizer,tokenize,session_type,session_length,sessionType,sessions,possession,obsession,ball_possession,"+
	"secretary,secretly,secretariat,credited,credit,card,credit_score,carded,card_type,discard,postcard,private,privately,private_beta,api,apis,api_version,access,accessible,"+
	"hotp,otps,laptop,jwts,pwds,ppwd,authorize,authorizations,k_e_y,api.key,credit[card],pass[word],se.cret,,_,..,[],1,été", ",")

func TestSecretsByWordAndEnding(t *testing.T) {
	var s Secrets
	for _, name := range hiddenNames {
		if !s.Hides(name) {
			t.Errorf("%q is not hidden", name)
		}
	}
	for _, name := range ordinaryNames {
		if s.Hides(name) {
			t.Errorf("%q is hidden", name)
		}
	}
}

// Except exempts exact names, not words: all other names stay hidden.
func TestSecretsExceptExemptsExactNames(t *testing.T) {
	s := NewSecrets([]string{"pin", "card number"}, []string{"auth-code", "token", "sort_code", "code", "pin"})
	for name, want := range map[string]bool{
		"token": false, "TOKEN": false, "to_ken": false, "filter[token]": false, "id_token": true, "user[token].password": true,
		"code": false, "_code": false, "pin": false, "cardNumber": true, "card-number": true, "my_card_number": false, "otp": true,
	} {
		if got := s.Hides(name); got != want {
			t.Errorf("%q is hidden: %v", name, got)
		}
	}
}

// slowlySecret implements the documentation with regular expressions. It separates the words of a
// part by spaces, and then joins them again one after the other.
func slowlySecret(name string) bool {
	for _, part := range regexp.MustCompile(`[\[\].]`).Split(name, -1) {
		text := strings.Map(func(r rune) rune { // each byte that is not ASCII is a letter
			if r > 0x7f {
				return 'ÿ'
			}
			return r
		}, latin1(part))
		text = regexp.MustCompile(`[^a-zA-Z0-9ÿ]+`).ReplaceAllString(text, " ")
		text = regexp.MustCompile(`([a-zÿ])([A-Z])`).ReplaceAllString(text, "$1 $2")
		text = regexp.MustCompile(`([A-Z])([A-Z][a-zÿ])`).ReplaceAllString(text, "$1 $2")
		text = regexp.MustCompile(`([0-9]+)`).ReplaceAllString(text, " $1 ")
		words := strings.Fields(strings.ToLower(text))
		joined := ""
		for _, word := range words {
			joined += word
			if regexp.MustCompile(`(passwords?|passwd|passphrase|passcode|secrets?|credentials?|apikeys?|privatekey|accesskey|creditcard)$`).MatchString(joined) {
				return true
			}
		}
		trimmed := strings.TrimRight(joined, "0123456789")
		if regexp.MustCompile(`(token(hint)?|session(id|key)?|sessid|signature|authorization)$`).MatchString(trimmed) && !regexp.MustCompile(`(pos|ob)session$`).MatchString(trimmed) {
			return true
		}
		if regexp.MustCompile(`^(code|auth|sig|pwd|otp|jwt)$`).MatchString(joined) {
			return true
		}
	}
	return false
}

// latin1 returns a string with a rune for each byte of s.
func latin1(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

func FuzzSecrets(f *testing.F) {
	for _, name := range slices.Concat(hiddenNames, ordinaryNames) {
		f.Add(name)
	}
	var s Secrets
	f.Fuzz(func(t *testing.T, name string) {
		if got, want := s.Hides(name), slowlySecret(name); got != want {
			t.Errorf("%q is hidden: %v", name, got)
		}
	})
}

// Names put together from secret words and possible neighbours are hidden exactly if the reference
// hides them.
func TestSecretsAgainstTheReference(t *testing.T) {
	pieces := slices.Concat(secretWords, secretEndings, secretNames, notSecret,
		[]string{"", "_", "-", " ", ":", "{", "[", "]", ".", "1", "22", "id", "Id", "ID", "type", "Type", "my", "a", "X", "é", "api", "key", "Key", "pass", "word", "TOKEN", "Secret", "Code"})
	var s Secrets
	seen := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		name := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 5).Draw(t, "pieces"), "")
		want := slowlySecret(name)
		seen[want]++
		if got := s.Hides(name); got != want {
			t.Fatalf("%q is hidden: %v", name, got)
		}
	})
	if !testing.Short() && (seen[true] == 0 || seen[false] == 0) {
		t.Errorf("hidden or not: %v", seen)
	}
}

// Every default name is hidden in any case, with "-" and "_" anywhere, and as part of a structured
// name.
func TestSecretsHideEveryWayToWriteAName(t *testing.T) {
	var s Secrets
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(slices.Concat(secretWords, secretEndings, secretNames)).Draw(t, "name")
		var b strings.Builder
		for _, c := range []byte(name) {
			b.WriteString(rapid.SampledFrom([]string{"", "", "", "-", "_", "-_"}).Draw(t, "between"))
			b.WriteString(rapid.SampledFrom([]string{string(c), strings.ToUpper(string(c))}).Draw(t, "case"))
		}
		form := rapid.SampledFrom([]string{"%", "user[%]", "user.%", "%[]", "a[%].b", "%.x"}).Draw(t, "form")
		if written := strings.Replace(form, "%", b.String(), 1); !s.Hides(written) {
			t.Fatalf("%q is not hidden", written)
		}
	})
}

// The quick check never passes a name that the thorough check hides.
func TestQuickLookPassesNoSecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		extra := rapid.SliceOfN(rapid.OneOf(rapid.StringMatching(`[a-zA-Z0-9_-]{0,6}`), anyBytes()), 0, 4).Draw(t, "extra")
		except := rapid.SliceOfN(rapid.SampledFrom(append([]string{"nothing"}, secretWords...)), 0, 3).Draw(t, "except")
		s := NewSecrets(extra, except)
		name := rapid.OneOf(
			rapid.SampledFrom(slices.Concat([]string{""}, secretWords, secretEndings, secretNames, extra)),
			rapid.StringMatching(`[a-cpt_-]{0,3}(token|password)?[a-cpt_.\[\]-]{0,3}`),
			anyBytes(),
		).Draw(t, "name")
		if s.hidesAny(name) != s.Hides(name) {
			t.Fatalf("%q: the quick look says %v", name, s.Hides(name))
		}
	})
}

// A configured secret name is hidden if a request has exactly that name.
func TestExtraSecretsAreHiddenAsTheyAreGiven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.StringMatching(`[a-zA-ZÀ-ÿА-я0-9_ :/-]{1,100}`), anyBytes()).Draw(t, "name")
		if strings.ContainsAny(name, "[].") || strings.Trim(name, "-_") == "" {
			t.Skip("no single name")
		}
		s := NewSecrets([]string{name}, nil)
		if !s.Hides(name) || !s.Hides("form["+name+"]") {
			t.Fatalf("%q is not hidden", name)
		}
	})
}

func TestSecretsDoNotAllocate(t *testing.T) {
	var s Secrets
	own := NewSecrets([]string{"pin", " "}, []string{"token"})
	long := strings.Repeat("x", 100) + "_code"
	if n := testing.AllocsPerRun(100, func() {
		s.Hides("q")
		s.Hides("user[Pass-Word]")
		s.Hides("tokens")
		s.Hides("sort_by_code_2")
		s.Hides(long)
		own.Hides("user[Pass-Word]")
		own.Hides("sort_by_code_2")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSecretsHides(b *testing.B) {
	var s Secrets
	for _, name := range []string{"q", "page", "sort_by", "userId", "access_token", "filter[size]"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Hides(name)
			}
		})
	}
}
