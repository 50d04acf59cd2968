package wire

import (
	"strconv"
	"time"
)

// Account is the sum of a sender's counts of one key since the sender opened the account. A line
// carries the sum including its own count, so that the key's next line makes up for a packet
// that was lost. A line with a count of 0 repeats an account.
//
//	shop.search.hot_param.GET%20/search?q=phone:3|c|k:1f.2c7
//
// No other field of StatsD begins this way, and readers skip fields that they do not know.
type Account struct {
	// Number identifies an account of an incarnation, whatever its key. Accounts are
	// numbered from 1 in the order in which they are opened. Zero means that the line has
	// no account.
	Number uint64
	Total  uint64
}

// AccountLife is the time after a key's last line with an account in which the key is sent only
// with that account. Until it has passed, no count of the key is outside the account.
const AccountLife = 2 * time.Second

// AppendAccount appends an account as a line's field.
func AppendAccount(dst []byte, a Account) []byte {
	dst = strconv.AppendUint(append(dst, "|k:"...), a.Number, 16)
	return strconv.AppendUint(append(dst, '.'), a.Total, 16)
}

// CutAccount cuts an account off the end of a line. ok is false if the line does not end in one.
func CutAccount(line []byte) (before []byte, a Account, ok bool) {
	index := len(line)
	if index, a.Total, ok = cutHex(line, index, '.'); !ok {
		return line, Account{}, false
	}
	if index, a.Number, ok = cutHex(line, index, ':'); !ok || index < 2 || line[index-1] != 'k' || line[index-2] != '|' || a.Number == 0 {
		return line, Account{}, false
	}
	return line[:index-2], a, true
}

// cutHex reads the hexadecimal number that ends at end, after the byte before. index is that of
// this byte.
func cutHex(line []byte, end int, before byte) (index int, n uint64, ok bool) {
	shift := 0
	for index = end - 1; index >= 0; index-- {
		c := line[index]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		default:
			return index, n, c == before && index < end-1
		}
		if shift == 64 {
			return 0, 0, false
		}
		n |= uint64(c) << shift
		shift += 4
	}
	return 0, 0, false
}
