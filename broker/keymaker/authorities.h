/* The certificate authorities this machine trusts, read at once. */
#ifndef BROKER_KEYMAKER_AUTHORITIES_H
#define BROKER_KEYMAKER_AUTHORITIES_H

#include <openssl/types.h>

/* Fill `store` with what OpenSSL trusts by default, $SSL_CERT_FILE and $SSL_CERT_DIR included;
 * what cannot be read is left out. Nothing is opened later. */
void
authorities_load(X509_STORE *store);

#endif
