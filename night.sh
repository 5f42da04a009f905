#!/bin/bash
#BERTH -J night --time 8h
#BERTH -n 2
python train.py --seed 1
