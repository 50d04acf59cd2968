package base

import "testing"

func TestReservedTexts(t *testing.T) {
	for _, test := range []struct {
		text, group, again string
		paramsOnly         bool
	}{
		{"GET /s?page=1&q=2", "GET /s?page&q", "GET /s?~again&page&q", false},
		{"page=1&path:q=2", "page&path:q", "~again&page&path:q", true},
		{"GET /s?q=", "GET /s?q", "GET /s?~again&q", false},
		{"what?now?q=1", "what?now?q", "what?now?~again&q", false},
		{"GET /s;a=b&c", "GET /s;a=b&c", "", false},
	} {
		group := AppendGroup(nil, []byte(test.text), test.paramsOnly)
		if string(group) != test.group {
			t.Errorf("%s: group %s, want %s", test.text, group, test.group)
		}
		if test.again == "" {
			continue
		}
		again := AppendAgain(nil, group)
		if string(again) != test.again || !IsAgain(again) || IsMore(again) || IsAgain([]byte(test.text)) {
			t.Errorf("%s: %s, want %s", test.text, again, test.again)
		}
		if back, ok := CutAgain(nil, again); !ok || string(back) != test.group {
			t.Errorf("%s is of %s, %v", again, back, ok)
		}
	}
	for text, want := range map[string]bool{"GET /s?~more": true, "~more": true, "GET /s?~more=": false, "GET /s?q=~more": false, "GET /~more": false, "": false} {
		if IsMore([]byte(text)) != want {
			t.Errorf("%q is more: %v", text, !want)
		}
	}
	for text, want := range map[string]bool{"POST /s?form:~unread": true, "json:~unread": true, "POST /s?form:~unread=": false, "POST /s?q=form:~unread": false, "POST /s?~unread": false, "POST /s?path:~unread": false, "": false} {
		if IsUnread([]byte(text)) != want {
			t.Errorf("%q is unread: %v", text, !want)
		}
	}
	for params, want := range map[string]bool{"~more": true, "~again&q": true, string(AppendUnread(nil, "json")): true, "q=1": false, "~unread": false} {
		if IsReservedParams(params) != want {
			t.Errorf("%q is reserved: %v", params, !want)
		}
	}
	if _, ok := CutAgain(nil, []byte("GET /s?~again=&q=1")); ok {
		t.Error("a parameter is taken for a reserved name")
	}
}
