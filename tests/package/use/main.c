#include "first.h"
#include "second.h"
#include "third.h"

int main(void)
{
    return first_answer() + second_answer() + third_answer() != 3 * 42 || TVMCC_ABI != 1;
}
