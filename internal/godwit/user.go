package godwit

import "crypto/sha256"

// A User is a person whom an identity provider has signed in.
type User struct {
	ID      UserID
	Issuer  string // URL of the provider
	Subject string // the provider's name of the person, which never changes and is never given to another
	Name    string // for people: an e-mail address, a login name or a name. It may change
}

// userVersion is the version of users' UUIDs: 8, made from a hash. Those of keys are minted, and have the version 7.
const userVersion = 0x80

// NewUser returns the user that an identity provider calls subject. The same person has the same id on every node and after every sign-in.
func NewUser(issuer, subject, name string) User {
	sum := sha256.Sum256([]byte("godwit user\x00" + issuer + "\x00" + subject))
	var id UserID
	copy(id[:], sum[:])
	id[6] = id[6]&0x0f | userVersion
	id[8] = id[8]&0x3f | 0x80
	return User{ID: id, Issuer: issuer, Subject: subject, Name: name}
}

// PrincipalText returns the text of a principal: usr_… for a user, key_… for an API key.
func PrincipalText(id KeyID) string {
	if id[6]&0xf0 == userVersion {
		return UserID(id).String()
	}
	return id.String()
}
