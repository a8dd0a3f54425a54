/* Windows of convolutions and pooling, of two dimensions or three. */
#ifndef TVMCC_FRONTENDS_TENSORFLOW_WINDOW_H
#define TVMCC_FRONTENDS_TENSORFLOW_WINDOW_H

#include "frontends/tensorflow/tensorflow.h"

typedef BuildWindow TfWindow; /* of two dimensions: the first two of each */

/* Strides and dilations, as the attributes have them, beside the kernel that is there already. */
bool tf_window_sizes(TfNode *n, TfWindow *w);
/* .. and the padding, of an image or volume in NCHW. */
bool tf_window(TfNode *n, const Expr *x, TfWindow *w);
/* What a transposed convolution of `cells` cuts off, and what it adds, to get `size`. */
bool tf_transposed(TfNode *n, uint32_t ndim, const int64_t *cells, const int64_t *size,
                   const char *padding, TfWindow *w, int64_t *extra);

#endif
