#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <stdatomic.h>
#include <sched.h>
#include <immintrin.h>
static float *b; static atomic_int cnt; static int gen_;
static double now(){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec*1e6+t.tv_nsec*1e-3;}
static void wr(float*p,size_t n){__m512 v=_mm512_set1_ps(1);for(size_t i=0;i<n;i+=16)_mm512_store_ps(p+i,v);}
static float rd(float*p,size_t n){__m512 a=_mm512_setzero_ps(),b=a,c=a,d=a;for(size_t i=0;i<n;i+=64){a+=_mm512_load_ps(p+i);b+=_mm512_load_ps(p+i+16);c+=_mm512_load_ps(p+i+32);d+=_mm512_load_ps(p+i+48);}return _mm512_reduce_add_ps(a+b+c+d);}
static void pin(int c){cpu_set_t s;CPU_ZERO(&s);CPU_SET(c,&s);sched_setaffinity(0,sizeof s,&s);}
static void bar(int *g){++*g;atomic_fetch_add(&cnt,1);while(atomic_load(&cnt)<2**g)_mm_pause();}
static double A[6][64];
static void run(int t){int g=0;
 for(size_t kb=32;kb<=8192;kb*=2){size_t n=kb*256;float*m=b+t*n,*o=b+(1-t)*n;volatile float f;
  for(int r=0;r<41;r++){double x[7];
   wr(m,n);bar(&g);bar(&g);x[0]=now();f=rd(m,n);bar(&g);x[1]=now();f=rd(o,n);bar(&g);x[2]=now();wr(m,n);bar(&g);x[3]=now();wr(m,n);bar(&g);x[4]=now();wr(o,n);bar(&g);x[5]=now();bar(&g);
   if(!t)for(int k=0;k<5;k++)A[k][r]=x[k+1]-x[k];}
  if(!t){int cmp(const void*,const void*);for(int k=0;k<5;k++)qsort(A[k],41,8,cmp);
   printf("%6zu KB each: rd own %.1f GB/s, rd other's %.1f, wr own(shared) %.1f, wr own %.1f, wr other's dirty %.1f\n",kb,kb*1.024/A[0][20],kb*1.024/A[1][20],kb*1.024/A[2][20],kb*1.024/A[3][20],kb*1.024/A[4][20]);fflush(stdout);}
 }}
int cmp(const void*a,const void*b){double x=*(double*)a-*(double*)b;return x<0?-1:x>0;}
static void*T(void*a){pin(1);run(1);return 0;}
int main(){pin(0);pthread_t t;b=aligned_alloc(2<<20,64<<20);memset(b,0,64<<20);pthread_create(&t,0,T,0);run(0);}
