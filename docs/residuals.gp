# Draws the errors of `shardwise validate` dimension by dimension:
#
#   shardwise validate --residuals residuals.tsv
#   gnuplot -e "file='residuals.tsv'" docs/residuals.gp
#
# writes docs/residuals-time.svg and docs/residuals-memory.svg. A dot is one source at one value of
# the dimension: the median of forecast / measured - 1 over its runs there, the larger the more runs.
# The box holds the middle half of the sources, the line in it their median.
if (!exists("file")) file = "residuals.tsv"
limit = 80

dimensions = "sequence microbatch size tensor pipeline data expert nodes recompute precision gpu method"
titles = "'tokens per sequence' 'sequences per microbatch' 'parameters' 'tensor parallel' \
'pipeline stages' 'data parallel' 'expert parallel' 'nodes' 'recomputation' 'number format' 'GPU' \
'method'"

clip(e) = e > limit ? limit : e < -limit ? -limit : e
radius(runs) = 0.25 + 0.11 * log(runs + 1)
spread(column) = 0.5 * (rand(0) - 0.5) + column
rows(dimension, figure) = sprintf("< awk -F'\\t' '$1 == \"%s\" && $5 == \"%s\"' %s", dimension, figure, file)

set terminal svg size 1200,1560 font "sans-serif,12" background "white"
set datafile separator "\t"
set yrange [-limit:limit]
set ytics 20
set format y "%+.0f %%"
set grid ytics lt 1 lc rgb "#dddddd"
set xtics rotate by 45 right font ",10" nomirror
set style boxplot nooutliers labels off
set style fill transparent solid 0.35 border lt -1
set boxwidth 0.7
set bmargin 7
set lmargin 8
set tmargin 3
unset key

do for [figure in "time memory"] {
  set output sprintf("docs/residuals-%s.svg", figure)
  x = rand(20261121)  # the same scatter every time
  set multiplot layout 6,2 title (figure eq "time" ? "Step time: forecast / measured - 1" \
    : "Peak memory: forecast / measured - 1")
  do for [i = 1:words(dimensions)] {
    data = rows(word(dimensions, i), figure)
    stats data using 2 nooutput
    last = STATS_max
    set title word(titles, i) font ",13"
    set xrange [0.4:last + 0.6]
    plot data using (1.0):(clip($7)):(0.7):2 with boxplot lc rgb "#9db7d9", \
         data using (spread($2)):(clip($7)):(radius($6)) with points pt 7 ps variable \
           lc rgb "#801f4e8c", \
         data using 2:(NaN):xtic(3) with points, \
         0 lt 1 lc rgb "#444444"
  }
  unset multiplot
}
