/* What the program needs of the board: a console, and the pictures in its flash. */
#ifndef BOARD_H
#define BOARD_H

void                 board_print(const char *text);
const unsigned char *board_picture(int digit); /* a PGM file of 16 x 16 pixels */

#endif
