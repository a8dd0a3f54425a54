/* The static libarchive can decrypt zip files through libnettle.  We never give a passphrase, so it
 * never gets that far; these stand in for the functions, and keep a library under another licence
 * out of the portable driver. */
#include <stdlib.h>

/* clang-format off */
#define NEVER(name) void name(void); void name(void) { abort(); }
/* clang-format on */

NEVER(nettle_aes128_encrypt)
NEVER(nettle_aes128_set_encrypt_key)
NEVER(nettle_aes192_encrypt)
NEVER(nettle_aes192_set_encrypt_key)
NEVER(nettle_aes256_encrypt)
NEVER(nettle_aes256_set_encrypt_key)
NEVER(nettle_hmac_sha1_digest)
NEVER(nettle_hmac_sha1_set_key)
NEVER(nettle_hmac_sha1_update)
NEVER(nettle_pbkdf2_hmac_sha1)
