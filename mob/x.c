#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <stdatomic.h>
#include <sched.h>
#include <immintrin.h>
static float *b; static size_t n; static atomic_int phase; static double sum;
static double now(){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec*1e6+t.tv_nsec*1e-3;}
static void wr(float*p,size_t n){__m512 v=_mm512_set1_ps(1);for(size_t i=0;i<n;i+=16)_mm512_store_ps(p+i,v);}
static float rd(float*p,size_t n){__m512 a=_mm512_setzero_ps(),b=a,c=a,d=a;for(size_t i=0;i<n;i+=64){a+=_mm512_load_ps(p+i);b+=_mm512_load_ps(p+i+16);c+=_mm512_load_ps(p+i+32);d+=_mm512_load_ps(p+i+48);}return _mm512_reduce_add_ps(a+b+c+d);}
static void pin(int c){cpu_set_t s;CPU_ZERO(&s);CPU_SET(c,&s);sched_setaffinity(0,sizeof s,&s);}
static void wait_(int p){while(atomic_load(&phase)!=p)_mm_pause();}
static void *T(void*a){pin(1);for(int i=0;;i++){wait_(1);wr(b,n);atomic_store(&phase,2);}}
int cmp(const void*a,const void*b){double x=*(double*)a-*(double*)b;return x<0?-1:x>0;}
int main(){pin(0);pthread_t t;b=aligned_alloc(2<<20,64<<20);memset(b,0,64<<20);pthread_create(&t,0,T,0);
for(size_t kb=32;kb<=16384;kb*=2){n=kb*256;double A[4][41];
for(int r=0;r<41;r++){
 atomic_store(&phase,1);wait_(2);double t0=now();volatile float f=rd(b,n);double t1=now();f=rd(b,n);double t2=now(); // remote dirty read, then local
 A[0][r]=t1-t0;A[1][r]=t2-t1;
 atomic_store(&phase,1);wait_(2);t0=now();wr(b,n);t1=now();wr(b,n);t2=now();A[2][r]=t1-t0;A[3][r]=t2-t1;
 (void)f;}
for(int k=0;k<4;k++)qsort(A[k],41,8,cmp);
printf("%6zu KB: read remote %.1f GB/s local %.1f; write remote %.1f local %.1f\n",kb,kb*1.024/A[0][20],kb*1.024/A[1][20],kb*1.024/A[2][20],kb*1.024/A[3][20]);}
}
